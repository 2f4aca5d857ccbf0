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
         ({:#010x}){ratio}; made of {}; {count} of {} elements are wrong",
        want.to_bits(),
        got.to_bits(),
        fed.join(", "),
        case.values.len()
    ))
}

#[cfg(test)]
mod tests {
    use gguf_assay_cases::Corpus;

    use super::*;

    fn case(id: &str) -> BlockCase {
        Corpus::embedded().blocks.iter().find(|case| case.id == id).unwrap().clone()
    }

    fn numbers(bits: &[u32]) -> Vec<f32> {
        bits.iter().map(|bits| f32::from_bits(*bits)).collect()
    }

    #[test]
    fn what_is_wrong_is_named() {
        // By hand: -8 sixteen times, then 7 sixteen times.
        let case = case("dequantize/q4-0/high-nibbles-second");
        let mut got = numbers(&case.values);
        assert_eq!(wrong_numbers(&case, &got), None);
        got[16] = 14.0;
        got[17] = 0.0;
        let complaint = wrong_numbers(&case, &got).unwrap();
        for part in ["element 16 of block 0 is 7.0", "2 times as much", "qs[0]", "2 of 32"] {
            assert!(complaint.contains(part), "{part}: {complaint}");
        }
        assert_eq!(wrong_numbers(&case, &got[1..]).unwrap(), "31 numbers for 32 elements");
    }

    #[test]
    fn nans_are_one_number_and_zeros_are_two() {
        let mut case = case("dequantize/q4-0/high-nibbles-second");
        case.values = vec![0x7fc0_0000; 32];
        assert_eq!(wrong_numbers(&case, &[f32::from_bits(0xffc0_0001); 32]), None);
        case.values = vec![0; 32];
        assert!(wrong_numbers(&case, &[-0.0; 32]).is_some());
    }

    #[test]
    fn a_second_answer_is_as_right() {
        let mut case = case("dequantize/q4-0/high-nibbles-second");
        case.or = Some(vec![0; 32]);
        assert_eq!(wrong_numbers(&case, &[0.0; 32]), None);
        assert!(wrong_numbers(&case, &[1.0; 32]).is_some());
    }
}
