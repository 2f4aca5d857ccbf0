//! Empty: stands in for a package that is resolved and never built.
