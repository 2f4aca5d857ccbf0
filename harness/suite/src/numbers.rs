//! Whether blocks were turned into the right numbers, and if not, in what they are wrong.

use gguf_assay_cases::BlockCase;
use gguf_assay_quant::feeds;

/// The first element that is wrong, with what feeds it, and how many there are; `None` if all are
/// right. All NaNs are one number; 0.0 and -0.0 are two.
pub(crate) fn wrong_numbers(case: &BlockCase, got: &[f32]) -> Option<String> {
    let complaint = compare(case, &case.values, got)?;
    match &case.or {
        Some(or) if compare(case, or, got).is_none() => None,
        _ => Some(complaint),
    }
}

fn compare(case: &BlockCase, want: &[u32], got: &[f32]) -> Option<String> {
    if want.len() != got.len() {
        return Some(format!("{} numbers for {} elements", got.len(), want.len()));
    }
    let wrong = |(want, got): (&u32, &f32)| {
        let want = f32::from_bits(*want);
        want.to_bits() != got.to_bits() && !(want.is_nan() && got.is_nan())
    };
    let first = want.iter().zip(got).position(wrong)?;
    let count = want.iter().zip(got).filter(|pair| wrong(*pair)).count();
    let len = case.tensor_type.block_len.max(1) as usize;
    let (block, element) = (first / len, first % len);
    let (want, got) = (f32::from_bits(want[first]), got[first]);
    let fed: Vec<String> =
        feeds(case.tensor_type, element).iter().map(ToString::to_string).collect();
    let ratio = match got / want {
        ratio if ratio.is_finite() => format!(", {ratio} times as much"),
        _ => String::new(),
    };
    Some(format!(
        "element {element} of block {block} is {want:?} ({:#010x}), the reader has {got:?} \
         ({:#010x}){ratio}; it comes from {}; {count} of {} elements are wrong",
        want.to_bits(),
        got.to_bits(),
        fed.join(", "),
        case.values.len()
    ))
}
