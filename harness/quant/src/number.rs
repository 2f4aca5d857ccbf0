//! The numbers of 8 bits that scale blocks or stand for themselves.
//!
//! Half precision and `bfloat16` are those of the crate `half`.

/// A power of two: 8 bits of exponent and nothing else (OCP Microscaling Formats, E8M0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct E8M0(pub u8);

impl E8M0 {
    /// Half of the number that it stands for, 2^(e - 128).
    ///
    /// Half, because the table of FP4 values holds twice each value. 255, a NaN in the OCP text, is
    /// one more power of two here. Source: `ggml_e8m0_to_fp32_half` in `ggml/src/ggml-impl.h`.
    pub const fn half_to_f32(self) -> f32 {
        // Exact: 2^-128 and 2^-127 are subnormal in f32, but no power here is in f64.
        f64::from_bits((self.0 as u64 + 1023 - 128) << 52) as f32
    }
}

/// An unsigned number of 4 bits of exponent (bias 7) and 3 of mantissa, in the low 7 bits.
///
/// NVFP4 uses it for its scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UE4M3(pub u8);

impl UE4M3 {
    /// Half of the number that it stands for, for the same reason as [`E8M0::half_to_f32`].
    ///
    /// The byte 0x7F, a NaN elsewhere, is 0. Bit 7 is ignored otherwise, so that 0xFF is half of
    /// 480. Source: `ggml_ue4m3_to_fp32` in `ggml/src/ggml-impl.h`.
    pub const fn half_to_f32(self) -> f32 {
        if self.0 == 0x7F { 0.0 } else { e4m3_magnitude(self.0) * 0.5 }
    }
}

/// A sign bit, 4 bits of exponent (bias 7) and 3 of mantissa, without infinities (OCP FP8, E4M3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct E4M3(pub u8);

impl E4M3 {
    /// The number. 0x7F and 0xFF are NaN; the largest is 448.
    ///
    /// Source: `ggml_f8_e4m3_to_fp32` in `ggml/src/ggml-impl.h`.
    pub fn to_f32(self) -> f32 {
        if self.0 & 0x7F == 0x7F {
            return f32::NAN;
        }
        let magnitude = e4m3_magnitude(self.0);
        if self.0 >> 7 == 1 { -magnitude } else { magnitude }
    }
}

/// The number in the low 7 bits, if none of them were special.
const fn e4m3_magnitude(byte: u8) -> f32 {
    let exponent = (byte >> 3 & 0xF) as u32;
    let mantissa = (byte & 7) as f32;
    if exponent == 0 {
        mantissa / 512.0 // 2^-9: the last place of the smallest normal numbers
    } else {
        let power = f32::from_bits((exponent + 127 - 7) << 23);
        power * (1.0 + mantissa / 8.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the OCP texts.
    #[test]
    fn e8m0() {
        let powers = [0u8, 1, 2, 127, 128, 129, 254, 255].map(|e| E8M0(e).half_to_f32());
        let by_hand = [
            f32::from_bits(1 << 21), // 2^-128
            f32::from_bits(1 << 22), // 2^-127
            f32::MIN_POSITIVE,       // 2^-126
            0.5,
            1.0,
            2.0,
            f32::from_bits(253 << 23), // 2^126
            f32::from_bits(254 << 23), // 2^127
        ];
        assert_eq!(powers, by_hand);
    }

    #[test]
    fn ue4m3() {
        let halves = [0u8, 1, 7, 8, 0x38, 0x7E, 0x7F, 0x80, 0xB8, 0xFE, 0xFF];
        let halves = halves.map(|byte| UE4M3(byte).half_to_f32() * 2.0);
        let by_hand =
            [0.0, 0.001953125, 0.013671875, 0.015625, 1.0, 448.0, 0.0, 0.0, 1.0, 448.0, 480.0];
        assert_eq!(halves, by_hand);
    }

    #[test]
    fn e4m3() {
        let numbers = [0u8, 1, 7, 8, 0x38, 0x7E, 0x81, 0xB8, 0xFE].map(|byte| E4M3(byte).to_f32());
        let by_hand =
            [0.0, 0.001953125, 0.013671875, 0.015625, 1.0, 448.0, -0.001953125, -1.0, -448.0];
        assert_eq!(numbers, by_hand);
        assert!(E4M3(0x7F).to_f32().is_nan() && E4M3(0xFF).to_f32().is_nan());
        assert_eq!(E4M3(0x80).to_f32().to_bits(), (-0.0f32).to_bits());
    }
}
