//! Every kernel, the reference and ggml.

use gguf_assay_format::{ByteOrder, Status, TENSOR_TYPES, TensorType};
use gguf_assay_oracle as ggml;
use gguf_assay_quant::kernel::Engine;

/// The types that files may use.
fn types() -> impl Iterator<Item = &'static TensorType> {
    TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed)
}

/// What [`dequantize`] takes for these blocks.
pub fn dequantize_input(tensor_type: &TensorType, blocks: &[u8]) -> Vec<u8> {
    let first = types().position(|t| t == tensor_type).unwrap_or(0) as u8;
    [&[first][..], blocks].concat()
}

/// The type that an input is of, and the rest of it.
fn split(bytes: &[u8]) -> Option<(&'static TensorType, &[u8])> {
    let (&first, bytes) = bytes.split_first()?;
    let t = types().nth(usize::from(first) % types().count())?;
    Some((t, bytes))
}

/// The rule of the type.
pub(crate) fn rule(bytes: &[u8]) -> String {
    let rule = split(bytes).map(|(t, _)| format!("QUANT-{:03}", t.id));
    match rule.and_then(|id| gguf_assay_quant::rule::find(&id)) {
        Some(rule) => format!("{rule}: {}", rule.title),
        None => "none: there is no block".into(),
    }
}

/// Takes the first byte for a type and the rest for blocks of it: every kernel that the machine has
/// gives the reference's numbers, and ggml does too, if it has a function for the type.
pub fn dequantize(bytes: &[u8]) {
    let Some((t, bytes)) = split(bytes) else { return };
    let blocks = bytes.len() / t.block_bytes as usize;
    let bytes = &bytes[..blocks * t.block_bytes as usize];
    let mut expected = vec![0.0; blocks * t.block_len as usize];
    gguf_assay_quant::dequantize(t, bytes, ByteOrder::Little, &mut expected).expect("whole blocks");

    let mut numbers = vec![0.0; expected.len()];
    let compare = |who: &str, numbers: &[f32]| {
        let differs =
            |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
        if let Some(at) = numbers.iter().zip(&expected).position(differs) {
            panic!("{t}, {who}: element {at} is {:?}, not {:?}", numbers[at], expected[at]);
        }
    };
    for engine in Engine::ALL.into_iter().filter(|engine| engine.is_available()) {
        let kernel = engine.kernel(t).expect("an engine that is there");
        kernel.dequantize_cached(bytes, ByteOrder::Little, &mut numbers).expect("whole blocks");
        compare(engine.name(), &numbers);
        numbers.fill(f32::MAX);
        kernel.dequantize_streamed(bytes, ByteOrder::Little, &mut numbers).expect("whole blocks");
        compare(engine.name(), &numbers);
        numbers.fill(f32::MAX);
    }
    if ggml::dequantize(t.id, bytes, &mut numbers).is_ok() {
        compare("ggml", &numbers);
    }
}
