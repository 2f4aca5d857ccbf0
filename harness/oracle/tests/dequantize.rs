//! ggml's functions that turn blocks into numbers, through the safe interface.

use gguf_assay_oracle::{NotDequantized, dequantize, type_count};

/// By hand: Q4_0 with scale 1 and bytes `F0` has -8 sixteen times, then 7 sixteen times.
#[test]
fn one_block() {
    let block = [&[0x00, 0x3C][..], &[0xF0; 16]].concat();
    let mut out = [0.0; 32];
    dequantize(2, &block, &mut out).unwrap();
    assert_eq!((out[..16].to_vec(), out[16..].to_vec()), (vec![-8.0; 16], vec![7.0; 16]));
}

/// Q8_K has no function in the type traits, but one of its own. By hand: scale 0.5, quants 2.
#[test]
fn q8_k() {
    let block = [&0.5f32.to_ne_bytes()[..], &[2; 256], &[0; 32]].concat();
    let mut out = [0.0; 256];
    dequantize(15, &block, &mut out).unwrap();
    assert_eq!(out, [1.0; 256]);
}

/// At every address, whatever alignment the block's C struct has.
#[test]
fn unaligned() {
    for shift in 0..8 {
        let block = [&[0; 8][..shift], &0.5f32.to_ne_bytes(), &[2; 256], &[0; 32]].concat();
        let mut out = [0.0; 256];
        dequantize(15, &block[shift..], &mut out).unwrap();
        assert_eq!(out, [1.0; 256], "shifted by {shift}");
    }
}

#[test]
fn nothing() {
    assert_eq!(dequantize(2, &[], &mut []), Ok(()));
}

#[test]
fn refusals() {
    let mut out = [1.0; 32];
    for id in [4, 5, 31, 32, 33, 36, 37, 38, type_count() as u32, u32::MAX] {
        assert_eq!(dequantize(id, &[], &mut []), Err(NotDequantized::UnknownType), "id {id}");
    }
    for (id, bytes) in [(0, 4), (9, 36), (24, 1), (25, 2), (26, 4), (27, 8), (28, 8)] {
        let answer = dequantize(id, &vec![0; bytes], &mut out[..1]);
        assert_eq!(answer, Err(NotDequantized::NoFunction), "id {id}");
    }
    for (bytes, elements) in [(17, 32), (19, 32), (36, 32), (0, 32), (18, 31), (18, 0), (0, 16)] {
        let answer = dequantize(2, &vec![0; bytes], &mut out[..elements]);
        assert_eq!(answer, Err(NotDequantized::WrongLength), "{bytes} bytes, {elements} elements");
    }
    assert_eq!(out, [1.0; 32]);
}

/// The second copy is the same code: its numbers are those of the first, for bytes of any value.
#[cfg(feature = "native")]
#[test]
fn native() {
    use gguf_assay_oracle::{dequantize_native, type_info};

    for id in 0..type_count() {
        let info = type_info(id).unwrap();
        let len = 1024 * info.block_len as usize;
        let bytes = 1024 * info.block_bytes as usize;
        let bytes: Vec<u8> = (0..bytes).map(|place| (place * 37 % 251) as u8).collect();
        let (mut ours, mut natives) = (vec![0.0; len], vec![0.0; len]);
        let answer = dequantize(id as u32, &bytes, &mut ours);
        assert_eq!(dequantize_native(id as u32, &bytes, &mut natives), answer);
        let class =
            |number: f32| if number.is_nan() { f32::NAN.to_bits() } else { number.to_bits() };
        let differs = ours.iter().zip(&natives).position(|(a, b)| class(*a) != class(*b));
        assert_eq!(differs, None, "{}", info.name);
    }
}
