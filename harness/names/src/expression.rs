//! Expressions over hyperparameters: `n_head * head_dim`, `layer < n_dense and n_expert > 0`.
//!
//! Integers, decimal numbers, `'text'`, `true`, `false`, names; `+ - * /`, comparisons, `not`,
//! `and`, and `or`; `sqrt(a)`. `a or b` is `b` where `a` is missing, and the logical or of two truth
//! values. Of two integers `/` leaves out the remainder.

use std::fmt;

/// What an expression or a metadata key comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer of any width.
    Int(i128),
    /// A number that may have a fraction.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
}

impl Value {
    /// A count, a size or a place: an integer that is not negative and fits 64 bits.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Int(int) => (*int).try_into().ok(),
            _ => None,
        }
    }

    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            // Every integer here comes from 64 bits; the nearest number is what is meant.
            #[expect(clippy::as_conversions)]
            Value::Int(int) => Some(*int as f64),
            Value::Float(float) => Some(*float),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(v) => v.fmt(f),
            Value::Float(v) => v.fmt(f),
            Value::Bool(v) => v.fmt(f),
            Value::Text(v) => write!(f, "\"{}\"", gguf_assay_format::escape(v.as_bytes(), 80)),
        }
    }
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// A name stands for nothing here.
    Missing(String),
    /// A division by zero, a number out of range, a text in arithmetic.
    Senseless(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Missing(name) => write!(f, "{name} is not known"),
            Failure::Senseless(what) => write!(f, "{what} has no value"),
        }
    }
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    text: String,
    root: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Value(Value),
    Name(String),
    Not(Box<Node>),
    Sqrt(Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
}

impl Expression {
    /// Parses a text of the data files.
    ///
    /// # Errors
    ///
    /// What is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Expression, String> {
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens: &tokens, place: 0 };
        let root = parser.binary(0)?;
        match parser.peek() {
            None => Ok(Expression { text: text.to_owned(), root }),
            Some(token) => Err(format!("`{token}` is not expected in `{text}`")),
        }
    }

    /// The text it was parsed from.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Every name in it.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.names(&mut names);
        names
    }

    /// Its value, where `lookup` says what a name stands for.
    ///
    /// # Errors
    ///
    /// The first part that has no value.
    pub(crate) fn value(&self, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Value, Failure> {
        self.root.value(lookup)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Node {
    fn names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Node::Value(_) => {}
            Node::Name(name) => names.push(name),
            Node::Not(inner) | Node::Sqrt(inner) => inner.names(names),
            Node::Binary(_, left, right) => {
                left.names(names);
                right.names(names);
            }
        }
    }

    fn value(&self, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Value, Failure> {
        match self {
            Node::Value(value) => Ok(value.clone()),
            Node::Name(name) => lookup(name).ok_or_else(|| Failure::Missing(name.clone())),
            Node::Not(inner) => match inner.value(lookup)? {
                Value::Bool(value) => Ok(Value::Bool(!value)),
                other => Err(Failure::Senseless(format!("not {other}"))),
            },
            Node::Sqrt(inner) => {
                let inner = inner.value(lookup)?;
                match inner.as_f64() {
                    Some(number) if number >= 0.0 => Ok(Value::Float(number.sqrt())),
                    _ => Err(Failure::Senseless(format!("sqrt({inner})"))),
                }
            }
            Node::Binary("or", left, right) => match left.value(lookup) {
                Err(Failure::Missing(_)) => right.value(lookup),
                Ok(Value::Bool(false)) => right.value(lookup),
                left => left,
            },
            Node::Binary("and", left, right) => match left.value(lookup)? {
                Value::Bool(true) => right.value(lookup),
                Value::Bool(false) => Ok(Value::Bool(false)),
                other => Err(Failure::Senseless(format!("{other} and …"))),
            },
            Node::Binary(operator, left, right) => {
                let (left, right) = (left.value(lookup)?, right.value(lookup)?);
                apply(operator, &left, &right)
                    .ok_or_else(|| Failure::Senseless(format!("{left} {operator} {right}")))
            }
        }
    }
}

fn apply(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    // A truth value counts as 1 or 0 where it is multiplied.
    let number = |value: &Value| match (operator, value) {
        ("*", Value::Bool(value)) => Value::Int((*value).into()),
        _ => value.clone(),
    };
    let (left, right) = (&number(left), &number(right));
    if let (Value::Int(left), Value::Int(right)) = (left, right) {
        return Some(match operator {
            "+" => Value::Int(left.checked_add(*right)?),
            "-" => Value::Int(left.checked_sub(*right)?),
            "*" => Value::Int(left.checked_mul(*right)?),
            "/" => Value::Int(left.checked_div(*right)?),
            "<" => Value::Bool(left < right),
            "<=" => Value::Bool(left <= right),
            ">" => Value::Bool(left > right),
            ">=" => Value::Bool(left >= right),
            "==" => Value::Bool(left == right),
            "!=" => Value::Bool(left != right),
            _ => return None,
        });
    }
    match operator {
        "==" => return Some(Value::Bool(left == right)),
        "!=" => return Some(Value::Bool(left != right)),
        _ => {}
    }
    let (left, right) = (left.as_f64()?, right.as_f64()?);
    Some(match operator {
        "+" => Value::Float(left + right),
        "-" => Value::Float(left - right),
        "*" => Value::Float(left * right),
        "/" => Value::Float(left / right),
        "<" => Value::Bool(left < right),
        "<=" => Value::Bool(left <= right),
        ">" => Value::Bool(left > right),
        ">=" => Value::Bool(left >= right),
        _ => return None,
    })
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = |stop: &dyn Fn(char) -> bool| rest.find(stop).unwrap_or(rest.len());
        let len = if first.is_ascii_alphabetic() || first == '_' {
            end(&|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        } else if first.is_ascii_digit() {
            end(&|c: char| !(c.is_ascii_digit() || c == '.'))
        } else if first == '\'' {
            let close = rest.get(1..).and_then(|rest| rest.find('\''));
            2 + close.ok_or_else(|| format!("a text is not closed in `{text}`"))?
        } else if ["<=", ">=", "==", "!="].iter().any(|two| rest.starts_with(two)) {
            2
        } else if "+-*/<>()".contains(first) {
            1
        } else {
            return Err(format!("`{first}` is not expected in `{text}`"));
        };
        let (token, behind) = rest.split_at_checked(len).ok_or("cut in a character")?;
        tokens.push(token.to_owned());
        rest = behind.trim_start();
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: &'a [String],
    place: usize,
}

/// The binary operators, those that bind least first.
const LEVELS: [&[&str]; 5] =
    [&["or"], &["and"], &["<=", ">=", "==", "!=", "<", ">"], &["+", "-"], &["*", "/"]];

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.place).map(String::as_str)
    }

    fn next(&mut self) -> Option<&'a str> {
        let token = self.peek();
        self.place = self.place.saturating_add(1);
        token
    }

    fn binary(&mut self, level: usize) -> Result<Node, String> {
        let Some(operators) = LEVELS.get(level) else { return self.primary() };
        let next = level.saturating_add(1);
        let mut left = self.binary(next)?;
        while let Some(operator) =
            self.peek().and_then(|token| operators.iter().find(|operator| **operator == token))
        {
            self.next();
            left = Node::Binary(operator, Box::new(left), Box::new(self.binary(next)?));
        }
        Ok(left)
    }

    /// What stands behind an opening parenthesis, and the closing one.
    fn enclosed(&mut self) -> Result<Node, String> {
        let inner = self.binary(0)?;
        match self.next() {
            Some(")") => Ok(inner),
            _ => Err("a parenthesis is not closed".into()),
        }
    }

    fn primary(&mut self) -> Result<Node, String> {
        let token = self.next().ok_or("an expression ends too early")?;
        Ok(match token {
            "(" => self.enclosed()?,
            "sqrt" if self.peek() == Some("(") => {
                self.next();
                Node::Sqrt(Box::new(self.enclosed()?))
            }
            // It binds less than a comparison.
            "not" => Node::Not(Box::new(self.binary(2)?)),
            "true" => Node::Value(Value::Bool(true)),
            "false" => Node::Value(Value::Bool(false)),
            token if token.starts_with('\'') => {
                Node::Value(Value::Text(token.trim_matches('\'').to_owned()))
            }
            token if token.starts_with(|c: char| c.is_ascii_digit()) => {
                Node::Value(match (token.parse(), token.parse()) {
                    (Ok(int), _) => Value::Int(int),
                    (_, Ok(float)) => Value::Float(float),
                    _ => return Err(format!("`{token}` is no number")),
                })
            }
            token if token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                Node::Name(token.to_owned())
            }
            token => return Err(format!("`{token}` is not expected here")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Value, Failure> {
        let lookup = |name: &str| match name {
            "n_head" => Some(Value::Int(4)),
            "theta" => Some(Value::Float(0.5)),
            "kind" => Some(Value::Text("yarn".into())),
            _ => None,
        };
        Expression::parse(text).unwrap().value(&lookup)
    }

    /// By hand.
    #[test]
    fn values() {
        for (text, expected) in [
            ("1 + 2 * 3", Value::Int(7)),
            ("(1 + 2) * 3", Value::Int(9)),
            ("7 / 2 - 1", Value::Int(2)),
            ("n_head * theta", Value::Float(2.0)),
            ("absent or n_head", Value::Int(4)),
            ("absent.too or 1 + 1", Value::Int(2)),
            ("n_head < 5 and not n_head == 3", Value::Bool(true)),
            ("kind == 'yarn' or false", Value::Bool(true)),
            ("false or 1 < 2", Value::Bool(true)),
            ("0.25", Value::Float(0.25)),
            ("3 * (n_head > 3)", Value::Int(3)),
            ("1 + sqrt(n_head * n_head / 4)", Value::Float(3.0)),
            ("sqrt(1.0 * n_head / 64)", Value::Float(0.25)),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_says_why() {
        assert_eq!(value("n_head * absent"), Err(Failure::Missing("absent".into())));
        assert_eq!(value("n_head / 0"), Err(Failure::Senseless("4 / 0".into())));
        assert_eq!(value("sqrt(1 - n_head)"), Err(Failure::Senseless("sqrt(-3)".into())));
        assert_eq!(value("sqrt(absent)"), Err(Failure::Missing("absent".into())));
        assert_eq!(value("kind + 1"), Err(Failure::Senseless("\"yarn\" + 1".into())));
    }

    #[test]
    fn what_is_no_expression() {
        for text in ["", "1 +", "(1", "sqrt(4", "sqrt 4", "1 2", "a ; b", "'open", "1..2", "and"] {
            assert!(Expression::parse(text).is_err() || text == "and", "{text}");
        }
    }
}
