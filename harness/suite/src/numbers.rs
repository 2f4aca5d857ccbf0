//! Whether blocks were turned into the right numbers, and if not, in what they are wrong.

use gguf_assay_cases::BlockCase;
use gguf_assay_quant::{Feed, RawBlock, feeds};

/// The first element that is wrong, what the wrong ones have in common, and what the first is made
/// of; `None` if all are right. All NaNs are one number; 0.0 and -0.0 are two.
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
    let want: Vec<f32> = want.iter().map(|bits| f32::from_bits(*bits)).collect();
    let wrong: Vec<usize> = (0..want.len()).filter(|&at| !is_same(want[at], got[at])).collect();
    let (&first, others) = wrong.split_first()?;
    let len = case.tensor_type.block_len.max(1) as usize;
    let place = |at: usize| format!("element {} of block {}", at % len, at / len);
    let ratio = match f64::from(got[first]) / f64::from(want[first]) {
        ratio if ratio.is_finite() && ratio != 0.0 => format!(", {} times as much", ratio as f32),
        _ => String::new(),
    };
    let mut text = format!(
        "{}: got {}, expected {}{ratio}; {} of {} elements are wrong",
        place(first),
        show(got[first]),
        show(want[first]),
        wrong.len(),
        want.len()
    );
    if let Some(pattern) = pattern(&want, got, &wrong, len) {
        text += &format!(": {pattern}");
    } else {
        for &at in others.iter().take(2) {
            text += &format!(", {}: got {:?}, expected {:?}", place(at), got[at], want[at]);
        }
    }
    let (block, element) = (first / len, first % len);
    text += &format!("; element {element} comes from {}", fed(case, block, element));
    Some(text)
}

fn is_same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn show(number: f32) -> String {
    format!("{number:?} ({:#010x})", number.to_bits())
}

/// What all wrong numbers have in common, if it is one of the usual faults: the sign, a factor, an
/// offset, or another order of the elements.
fn pattern(want: &[f32], got: &[f32], wrong: &[usize], len: usize) -> Option<String> {
    let every = |holds: &dyn Fn(f32, f32) -> bool| {
        wrong.len() > 1 && wrong.iter().all(|&at| holds(want[at], got[at]))
    };
    // A few roundings more or less make no other pattern.
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
    let (first_want, first_got) = (f64::from(want[wrong[0]]), f64::from(got[wrong[0]]));

    if every(&|want, got| want == 0.0 && got == 0.0) {
        return Some("all of them zeros of the wrong sign".into());
    }
    if every(&|want, got| is_same(-want, got)) {
        return Some("each has the opposite sign".into());
    }
    let factor = first_got / first_want;
    if factor.is_finite() && factor != 0.0 && !near(factor, 1.0) {
        let scaled = |want: f32, got: f32| near(f64::from(want) * factor, f64::from(got));
        if every(&|want, got| got != 0.0 && scaled(want, got)) {
            return Some(format!("each is {} times what is expected", factor as f32));
        }
    }
    let blocks = || want.chunks(len).zip(got.chunks(len));
    let moved = |by: usize| {
        blocks().all(|(want, got)| (0..len).all(|at| is_same(want[(at + by) % len], got[at])))
    };
    if let Some(by) = (1..len).find(|&by| moved(by)) {
        let (by, way) = if 2 * by <= len { (by, "on") } else { (len - by, "back") };
        return Some(format!(
            "each is shifted: it is that of the element {by} further {way} in its block, counted \
             round"
        ));
    }
    let sorted = |numbers: &[f32]| {
        let mut bits: Vec<u32> = numbers.iter().map(|number| number.to_bits()).collect();
        bits.sort_unstable();
        bits
    };
    if blocks().all(|(want, got)| sorted(want) == sorted(got)) {
        let moved =
            wrong.iter().find_map(|&at| Some((at % len, only_place(want, got[at], at, len)?)));
        let example = moved.map(|(at, from)| format!(": element {at} has that of element {from}"));
        return Some(format!(
            "the numbers of each block are right, their order is not{}",
            example.unwrap_or_default()
        ));
    }
    let offset = first_got - first_want;
    if offset.is_finite()
        && every(&|want, got| near(f64::from(want) + offset, f64::from(got)))
        && !near(first_got, first_want)
    {
        let word = if offset > 0.0 { "more" } else { "less" };
        return Some(format!("each is {} {word} than expected", offset.abs() as f32));
    }
    None
}

/// The element that has `number` in the block of `at`, if only one has it.
fn only_place(want: &[f32], number: f32, at: usize, len: usize) -> Option<usize> {
    let block = want.chunks(len).nth(at / len)?;
    let mut places = (0..len).filter(|&place| is_same(block[place], number));
    let place = places.next()?;
    places.next().is_none().then_some(place)
}

/// The parts of the block that an element comes from, with what they are.
fn fed(case: &BlockCase, block: usize, element: usize) -> String {
    let raw = RawBlock::at(case.tensor_type, &case.bytes, case.byte_order, block).ok();
    let feeds = feeds(case.tensor_type, element);
    let shown = feeds.iter().map(|feed| match raw.and_then(|raw| value(&raw, feed)) {
        Some(value) => format!("{feed} = {value}"),
        None => feed.to_string(),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// What a feed's bits are: the number that they make up, or the bits as an unsigned one.
fn value(block: &RawBlock<'_>, feed: &Feed) -> Option<String> {
    let number = block.field(feed.field, feed.index)?;
    if feed.bits == (0..8 * number.kind.byte_len() as u32) {
        return Some(number.to_string());
    }
    block.bits(feed).map(|bits| bits.to_string())
}

#[cfg(test)]
mod tests {
    use gguf_assay_cases::Corpus;

    use super::*;
    use crate::run::DETAIL;

    fn case(id: &str) -> BlockCase {
        Corpus::embedded().blocks.iter().find(|case| case.id == id).unwrap().clone()
    }

    fn numbers(bits: &[u32]) -> Vec<f32> {
        bits.iter().map(|bits| f32::from_bits(*bits)).collect()
    }

    /// By hand: -8 sixteen times, then 7 sixteen times, with a scale of 1.
    fn halves() -> (BlockCase, Vec<f32>) {
        let case = case("dequantize/q4-0/high-nibbles-second");
        let right = numbers(&case.values);
        assert_eq!(right, [[-8.0; 16], [7.0; 16]].concat());
        (case, right)
    }

    #[test]
    fn what_is_wrong_is_named() {
        let (case, mut got) = halves();
        assert_eq!(wrong_numbers(&case, &got), None);
        got[16] = 14.0;
        got[17] = 0.0;
        assert_eq!(
            wrong_numbers(&case, &got).unwrap(),
            "element 16 of block 0: got 14.0 (0x41600000), expected 7.0 (0x40e00000), 2 times as \
             much; 2 of 32 elements are wrong, element 17 of block 0: got 0.0, expected 7.0; \
             element 16 comes from scale from d[0] bits 0 to 15 = 1.0 (0x3c00), quant \
             from qs[0] bits 4 to 7 = 15"
        );
        assert_eq!(wrong_numbers(&case, &got[1..]).unwrap(), "31 numbers for 32 elements");
    }

    #[test]
    fn usual_faults_are_told_apart() {
        let (case, right) = halves();
        let every = |change: &dyn Fn(f32) -> f32| right.iter().map(|n| change(*n)).collect();
        let interleaved: Vec<f32> = (0..32).map(|at| right[at % 2 * 16 + at / 2]).collect();
        let swapped: Vec<f32> = (0..32).map(|at| right[(at + 16) % 32]).collect();
        let moved: Vec<f32> = (0..32).map(|at| right[(at + 31) % 32]).collect();
        let faults: [(Vec<f32>, &str); 7] = [
            (every(&|n| n * 2.0), "32 of 32 elements are wrong: each is 2 times what is expected;"),
            (every(&|n| -n), ": each has the opposite sign;"),
            (every(&f32::abs), "16 of 32 elements are wrong: each has the opposite sign;"),
            (every(&|n| n - 1.0), ": each is 1 less than expected;"),
            (swapped, ": each is shifted: it is that of the element 16 further on in its block"),
            (moved, ": each is shifted: it is that of the element 1 further back in its block"),
            (interleaved, ": the numbers of each block are right, their order is not;"),
        ];
        for (got, words) in faults {
            let complaint = wrong_numbers(&case, &got).unwrap();
            assert!(complaint.contains(words), "{words}: {complaint}");
        }
    }

    /// Interleaved by hand: element 1 has 16, which elements 4 and 16 have; element 2 has that of 1.
    #[test]
    fn another_order_is_shown_by_a_number_that_occurs_once() {
        let (mut case, _) = halves();
        let mut right: Vec<f32> = (0u8..32).map(f32::from).collect();
        right[4] = 16.0;
        case.values = right.iter().map(|number| number.to_bits()).collect();
        let got: Vec<f32> = (0..32).map(|at| right[at % 2 * 16 + at / 2]).collect();
        let complaint = wrong_numbers(&case, &got).unwrap();
        assert!(complaint.contains(": element 2 has that of element 1;"), "{complaint}");
    }

    /// Of a type with many parts, the whole complaint is passed on: see `run_case`.
    #[test]
    fn a_complaint_has_room() {
        for case in &Corpus::embedded().blocks {
            let got = vec![0.123_456_79; case.values.len()];
            let complaint = wrong_numbers(case, &got).unwrap();
            assert!(complaint.chars().count() <= DETAIL, "{}: {complaint}", case.id);
        }
    }

    #[test]
    fn nans_are_one_number_and_zeros_are_two() {
        let mut case = case("dequantize/q4-0/high-nibbles-second");
        case.values = vec![0x7fc0_0000; 32];
        assert_eq!(wrong_numbers(&case, &[f32::from_bits(0xffc0_0001); 32]), None);
        case.values = vec![0; 32];
        let complaint = wrong_numbers(&case, &[-0.0; 32]).unwrap();
        assert!(complaint.contains("all of them zeros of the wrong sign"), "{complaint}");
    }

    #[test]
    fn a_second_answer_is_as_right() {
        let mut case = case("dequantize/q4-0/high-nibbles-second");
        case.or = Some(vec![0; 32]);
        assert_eq!(wrong_numbers(&case, &[0.0; 32]), None);
        assert!(wrong_numbers(&case, &[1.0; 32]).is_some());
    }
}
