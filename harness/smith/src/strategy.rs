//! Files and faults as proptest strategies. Needs the feature `proptest`.
//!
//! ```
//! use gguf_assay_format::{Profile, lay_out, read};
//! use gguf_assay_smith::{Reach, Smith, strategy};
//! use proptest::prelude::*;
//!
//! proptest!(|(file in strategy::file(Smith::new(Reach::Both)))| {
//!     prop_assert!(read(&lay_out(&file).to_bytes(), Profile::Spec).is_ok());
//! });
//! ```

use arbitrary::Unstructured;
use gguf_assay_format::{Description, Rule};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::{Planted, Smith, plant_from, small_rules};

/// Valid files. They shrink as the bytes do that make them: to fewer and simpler parts.
pub fn file(smith: Smith) -> impl Strategy<Value = Description> {
    vec(any::<u8>(), 0..2048).prop_map(move |bytes| smith.forge(&mut Unstructured::new(&bytes)))
}

/// Files that break the rule that they name.
pub fn broken(smith: Smith) -> impl Strategy<Value = Planted> {
    let rules: Vec<&'static Rule> = small_rules().collect();
    (file(smith), select(rules), vec(any::<u8>(), 0..64))
        .prop_filter_map("some files have no place for the fault", |(file, rule, bytes)| {
            plant_from(rule, &file, &mut Unstructured::new(&bytes))
        })
}
