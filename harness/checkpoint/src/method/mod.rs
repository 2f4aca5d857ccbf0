//! The methods of quantization: what each declares, and which tensors, of which shapes, stand for a
//! weight. One file for each method; `golden/checkpoints` shows all of it.

mod auto_round;
mod awq;
mod bitsandbytes;
mod compressed_tensors;
mod fp8;
mod gptq;
mod hqq;
mod modelopt;
mod mxfp4;
mod quark;

use std::fmt;
use std::sync::LazyLock;

use crate::config::Fields;
use crate::dtype::{Dtype, FLOATS};
use crate::finding::Refusal;
use crate::packing::PackedLayout;
use crate::scheme::Declaration;

/// A method of quantization.
#[derive(Debug)]
pub struct Method {
    /// `quant_method` in the config.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Where the facts are from.
    pub source: &'static str,
    /// The fields of its config, those of the first level.
    pub fields: &'static [Field],
    /// How it lays a weight down.
    pub layouts: &'static [&'static Layout],
    /// Reads the config. What is wrong with its fields is found by the table; this adds what several
    /// fields say together.
    pub(crate) declare: fn(&mut Fields<'_>) -> Declaration,
}

impl Method {
    /// All that are known.
    pub const ALL: &[&Method] = &[
        &gptq::METHOD,
        &awq::METHOD,
        &compressed_tensors::METHOD,
        &fp8::METHOD,
        &fp8::FBGEMM,
        &bitsandbytes::METHOD,
        &mxfp4::METHOD,
        &hqq::METHOD,
        &auto_round::METHOD,
        &modelopt::METHOD,
        &quark::METHOD,
    ];

    /// The method that a config names.
    pub fn find(name: &str) -> Option<&'static Method> {
        Method::ALL.iter().copied().find(|method| method.name == name)
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Method) -> bool {
        self.name == other.name
    }
}

/// A field of a method's config.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Other names that tools write.
    pub aliases: &'static [&'static str],
    /// What it holds.
    pub kind: Kind,
    /// Whether it has to be there.
    pub required: bool,
    /// What it means.
    pub what: &'static str,
}

impl Field {
    const fn new(name: &'static str, kind: Kind, what: &'static str) -> Field {
        Field { name, aliases: &[], kind, required: false, what }
    }

    const fn required(self) -> Field {
        Field { required: true, ..self }
    }

    const fn or(self, aliases: &'static [&'static str]) -> Field {
        Field { aliases, ..self }
    }
}

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// One of these numbers.
    OneOf(&'static [i64]),
    /// -1, or a positive number.
    GroupSize,
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// A number from the first to the second.
    Number(f64, f64),
    /// One of these words, in any case.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// A list of text, or null.
    Texts,
    /// Two positive numbers: the rows and columns of a block.
    Block,
    /// An object.
    Object,
    /// Anything: read and not judged.
    Any,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Bool => f.write_str("true or false"),
            Kind::OneOf(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
                f.write_str(&numbers.join(", "))
            }
            Kind::GroupSize => f.write_str("-1 or a positive number"),
            Kind::Integer(from, to) => write!(f, "a whole number from {from} to {to}"),
            Kind::Number(from, to) => write!(f, "a number from {from} to {to}"),
            Kind::Word(words) => f.write_str(&words.join(", ")),
            Kind::Text => f.write_str("text"),
            Kind::Texts => f.write_str("a list of text"),
            Kind::Block => f.write_str("two positive numbers"),
            Kind::Object => f.write_str("an object"),
            Kind::Any => f.write_str("anything"),
        }
    }
}

/// How a weight is laid down in tensors.
#[derive(Debug)]
pub struct Layout {
    /// Its name, for people and for machines.
    pub name: &'static str,
    /// How its numbers are read; of GPTQ's versions the first, the config names the other.
    pub packed: PackedLayout,
    /// Its tensors.
    pub tensors: &'static [TensorRule],
    /// How codes are packed.
    pub packing: &'static str,
    /// What a zero point is, and how it is stored.
    pub zero_point: &'static str,
    /// What a weight is made of.
    pub value: &'static str,
    /// The widths that a code may have; the first is the usual one.
    pub bits: &'static [u64],
    /// The group sizes that a format fixes; none if any may be declared.
    pub groups: &'static [u64],
}

impl PartialEq for Layout {
    fn eq(&self, other: &Layout) -> bool {
        self.name == other.name
    }
}

impl Layout {
    /// Every layout of every method, each once.
    pub fn all() -> impl Iterator<Item = &'static Layout> {
        static ALL: LazyLock<Vec<&'static Layout>> = LazyLock::new(|| {
            let mut all: Vec<&'static Layout> = Vec::new();
            for layout in Method::ALL.iter().flat_map(|method| method.layouts) {
                if !all.contains(layout) {
                    all.push(layout);
                }
            }
            all
        });
        ALL.iter().copied()
    }

    /// Whether scales are of blocks of rows and columns.
    pub fn has_blocks(&self) -> bool {
        let mut dims = self.tensors.iter().flat_map(|tensor| tensor.shape);
        dims.any(|dim| dim.per == [Term::Rows] || dim.per == [Term::Cols])
    }

    /// The rule of the tensor with this suffix.
    pub fn tensor(&self, suffix: &str) -> Option<&'static TensorRule> {
        self.tensors.iter().find(|tensor| tensor.suffix == suffix)
    }
}

/// A tensor of a layout.
#[derive(Debug)]
pub struct TensorRule {
    /// What follows the module's name: `.qweight`.
    pub suffix: &'static str,
    /// The types that it may have; the first is the usual one.
    pub dtypes: &'static [Dtype],
    /// Its shape.
    pub shape: &'static [Dim],
    /// Whether it has to be there.
    pub presence: Presence,
    /// What it holds.
    pub what: &'static str,
}

impl TensorRule {
    /// A tensor that has to be there.
    const fn new(
        suffix: &'static str,
        dtypes: &'static [Dtype],
        shape: &'static [Dim],
        what: &'static str,
    ) -> TensorRule {
        TensorRule { suffix, dtypes, shape, presence: Presence::Always, what }
    }

    const fn when(self, presence: Presence) -> TensorRule {
        TensorRule { presence, ..self }
    }
}

/// When a tensor has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Always,
    /// It may be missing.
    Optional,
    /// If zero points are not all the same; else it may be missing.
    Asymmetric,
}

/// A length: the product of some terms divided by that of others, rounded up.
#[derive(Clone, Copy, Debug)]
pub struct Dim {
    /// What is multiplied.
    pub times: &'static [Term],
    /// What it is divided by.
    pub per: &'static [Term],
}

/// What a length depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// This number.
    Num(u64),
    /// The features that go in: columns of the weight.
    In,
    /// Those that come out: its rows.
    Out,
    /// The numbers of the weight: in times out.
    Elements,
    /// The experts.
    Experts,
    /// The width of a code.
    Bits,
    /// The group size; that of the whole row is `in`.
    Group,
    /// The rows of a block.
    Rows,
    /// The columns of a block.
    Cols,
    /// The words of zero points in a row of AWQ's GEMV layouts.
    ZerosWidth,
    /// Whatever is there.
    Any,
}

impl Dim {
    /// One term.
    const fn of(term: &'static [Term]) -> Dim {
        Dim { times: term, per: &[] }
    }

    /// A product divided by another, rounded up.
    const fn ceil(times: &'static [Term], per: &'static [Term]) -> Dim {
        Dim { times, per }
    }
}

const IN: Dim = Dim::of(&[Term::In]);
const OUT: Dim = Dim::of(&[Term::Out]);
const ONE: Dim = Dim::of(&[Term::Num(1)]);
const ANY: Dim = Dim::of(&[Term::Any]);
/// Groups along a row.
const GROUPS: Dim = Dim::ceil(&[Term::In], &[Term::Group]);
const EXPERTS: Dim = Dim::of(&[Term::Experts]);

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Term::Num(number) => return number.fmt(f),
            Term::In => "in",
            Term::Out => "out",
            Term::Elements => "in*out",
            Term::Experts => "experts",
            Term::Bits => "bits",
            Term::Group => "group",
            Term::Rows => "rows",
            Term::Cols => "cols",
            Term::ZerosWidth => "zeros_width",
            Term::Any => "any",
        })
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let product = |terms: &[Term]| {
            let terms: Vec<String> = terms.iter().map(Term::to_string).collect();
            terms.join("*")
        };
        match self.per {
            [] => f.write_str(&product(self.times)),
            [_] => write!(f, "ceil({}/{})", product(self.times), product(self.per)),
            _ => write!(f, "ceil({}/({}))", product(self.times), product(self.per)),
        }
    }
}

/// A bias, as any linear layer may have one.
const BIAS: TensorRule =
    TensorRule::new(".bias", &[Dtype::BF16, Dtype::F16, Dtype::F32], &[OUT], "the bias")
        .when(Presence::Optional);

/// What vLLM 0.33.0 refuses.
const fn vllm(says: &'static str) -> Refusal {
    Refusal { loader: "vLLM 0.33.0", says }
}

/// What transformers 5.24.0 refuses.
const fn transformers(says: &'static str) -> Refusal {
    Refusal { loader: "transformers 5.24.0", says }
}
