//! The rules of the blocks: one for each type that files may have, with the type's id as its number.
//!
//! The text of the specification names the types and does not say what their blocks mean, so that
//! ggml's code (ggml 0.28.0) is the authority. Where ggml has no function, there is one meaning
//! only.

use gguf_assay_format::{Requirement, Rule};

use Requirement::{Must, Silent};

/// A clause of a type that ggml has no function for.
const ONE_MEANING: Requirement = Must("one meaning: the number itself, in f32");

macro_rules! rules {
    ($($name:ident = $id:literal $title:literal, $function:tt, $effect:literal;)+) => {
        $(
            #[doc = concat!("The rule `", $id, "`.")]
            pub static $name: Rule = Rule {
                id: $id,
                title: $title,
                spec: Silent,
                ggml: asked_by!(ggml $function),
                policy: asked_by!(policy $function),
                effect: $effect,
                advice: ADVICE,
                cves: &[],
            };
        )+

        /// Every rule, in the order of the types' ids.
        pub static RULES: &[&Rule] = &[$(&$name),+];
    };
}

macro_rules! asked_by {
    (ggml nothing) => {
        Silent
    };
    (ggml $function:literal) => {
        Must($function)
    };
    (policy nothing) => {
        ONE_MEANING
    };
    (policy $function:literal) => {
        Silent
    };
}

/// The file is right; the reader is not.
const ADVICE: &str = "no file is at fault: take a reader that has these numbers right, or convert \
                      the tensor to a type that yours has right";

rules! {
    QUANT_000 = "QUANT-000" "F32: the number of 32 bits itself", nothing,
        "weights of another size";
    QUANT_001 = "QUANT-001" "F16: half precision, subnormal numbers and negative zero included",
        "ggml.c: ggml_fp16_to_fp32_row", "small weights become zero, or all are taken for BF16";
    QUANT_002 = "QUANT-002"
        "Q4_0: (q - 8)·d; low nibbles are elements 0 to 15, high nibbles 16 to 31",
        "ggml-quants.c: dequantize_row_q4_0", "weights shifted by 16 places or interleaved";
    QUANT_003 = "QUANT-003" "Q4_1: q·d + m; low nibbles are elements 0 to 15, high nibbles 16 to 31",
        "ggml-quants.c: dequantize_row_q4_1", "weights shifted by a wrong min";
    QUANT_006 = "QUANT-006" "Q5_0: (q - 16)·d; nibbles as in Q4_0, bit j of qh is the fifth of \
         element j",
        "ggml-quants.c: dequantize_row_q5_0", "weights off by 16 steps";
    QUANT_007 = "QUANT-007" "Q5_1: q·d + m; nibbles as in Q4_0, bit j of qh is the fifth of \
         element j",
        "ggml-quants.c: dequantize_row_q5_1", "weights off by 16 steps";
    QUANT_008 = "QUANT-008" "Q8_0: q·d, q signed",
        "ggml-quants.c: dequantize_row_q8_0", "negative weights become large positive ones";
    QUANT_009 = "QUANT-009" "Q8_1: q·d, q signed; the sum s takes no part", nothing,
        "quants read two bytes too early";
    QUANT_010 = "QUANT-010" "Q2_K: (d·sc)·q - dmin·mn, scale and min for 16 elements; the four \
         pairs of bits of 32 bytes are 32 elements each",
        "ggml-quants.c: dequantize_row_q2_K", "weights of other sub-blocks' scales, or permuted";
    QUANT_011 = "QUANT-011" "Q3_K: (d·(sc - 32))·(q - 4), scales of 6 bits for 16 elements, q's \
         third bit in hmask",
        "ggml-quants.c: dequantize_row_q3_K", "weights of wrong scale, sign or place";
    QUANT_012 = "QUANT-012" "Q4_K: (d·sc)·q - dmin·mn, scale and min of 6 bits for 32 elements; \
         of 32 bytes, low nibbles are the first 32 elements",
        "ggml-quants.c: dequantize_row_q4_K", "sub-blocks 4 to 7 get other scales and mins";
    QUANT_013 = "QUANT-013" "Q5_K: (d·sc)·q - dmin·mn, scales and nibbles as in Q4_K, bit k of \
         qh's byte l is the fifth of element 32·k + l",
        "ggml-quants.c: dequantize_row_q5_K", "weights off by 16 steps, or in the wrong half";
    QUANT_014 = "QUANT-014" "Q6_K: (d·sc)·(q - 32), signed scale for 16 elements; of each 128, \
         nibbles are 64 elements, pairs of bits 32",
        "ggml-quants.c: dequantize_row_q6_K", "weights permuted, or off by 16 steps";
    QUANT_015 = "QUANT-015" "Q8_K: d·q, d of 32 bits, q signed; the sums take no part",
        "ggml-quants.c: dequantize_row_q8_K", "the scale read as half precision";
    QUANT_016 = "QUANT-016" "IQ2_XXS: ±(d·(0.5 + sc)/4)·g, 8 elements an entry of 256, 7 bits of \
         signs, scale for 32 elements",
        "ggml-quants.c: dequantize_row_iq2_xxs", "weights of wrong sign, scale or grid entry";
    QUANT_017 = "QUANT-017" "IQ2_XS: ±(d·(0.5 + sc)/4)·g, 8 elements an entry of 512, 7 bits of \
         signs, scale for 16 elements",
        "ggml-quants.c: dequantize_row_iq2_xs", "weights of wrong sign, scale or grid entry";
    QUANT_018 = "QUANT-018" "IQ3_XXS: ±(d·(0.5 + sc)/2)·g, 4 elements an entry of 256, 7 bits of \
         signs for 8 elements, scale for 32",
        "ggml-quants.c: dequantize_row_iq3_xxs", "weights of wrong sign, scale or grid entry";
    QUANT_019 = "QUANT-019" "IQ1_S: (d·(2·sc + 1))·(g ± 1/8), 8 elements an entry of 2048, scale \
         and shift for 32 elements",
        "ggml-quants.c: dequantize_row_iq1_s", "weights of wrong scale, shift or grid entry";
    QUANT_020 = "QUANT-020" "IQ4_NL: d·L[q], uneven levels; low nibbles are elements 0 to 15, high \
         nibbles 16 to 31",
        "ggml-quants.c: dequantize_row_iq4_nl", "levels taken for even steps";
    QUANT_021 = "QUANT-021" "IQ3_S: ±(d·(1 + 2·sc))·g, 4 elements an entry of 512, a bit of sign \
         each, scale for 32 elements",
        "ggml-quants.c: dequantize_row_iq3_s", "weights of wrong sign, scale or grid entry";
    QUANT_022 = "QUANT-022" "IQ2_S: ±(d·(0.5 + sc)/4)·g, 8 elements an entry of 1024, a bit of \
         sign each, scale for 16 elements",
        "ggml-quants.c: dequantize_row_iq2_s", "weights of wrong sign, scale or grid entry";
    QUANT_023 = "QUANT-023" "IQ4_XS: (d·(sc - 32))·L[q], scales of 6 bits for 32 elements, levels \
         and nibbles as in IQ4_NL",
        "ggml-quants.c: dequantize_row_iq4_xs", "weights of wrong scale or sign";
    QUANT_024 = "QUANT-024" "I8: the integer, signed", nothing, "negative numbers become large";
    QUANT_025 = "QUANT-025" "I16: the integer, signed", nothing, "negative numbers become large";
    QUANT_026 = "QUANT-026" "I32: the integer, signed, rounded to the nearest f32", nothing,
        "large numbers are off by one place";
    QUANT_027 = "QUANT-027" "I64: the integer, signed, rounded once to the nearest f32", nothing,
        "large numbers are cut to 32 bits, or rounded twice";
    QUANT_028 = "QUANT-028" "F64: the number, rounded to the nearest f32; infinite beyond its range",
        nothing, "numbers are cut instead of rounded";
    QUANT_029 = "QUANT-029" "IQ1_M: (d·(2·sc + 1))·(g ± 1/8), d from the top four bits of the four \
         scale words, scale for 16 elements, shift for 8",
        "ggml-quants.c: dequantize_row_iq1_m", "weights of wrong scale, shift or grid entry";
    QUANT_030 = "QUANT-030" "BF16: the upper half of an f32, subnormal numbers included",
        "ggml.c: ggml_bf16_to_fp32_row", "small weights become zero, or all are taken for F16";
    QUANT_034 = "QUANT-034" "TQ1_0: (q - 1)·d, five digits of base 3 a byte; the digits in the \
         same place of 32, then 16, then 4 bytes are neighbours",
        "ggml-quants.c: dequantize_row_tq1_0", "weights permuted, or of wrong digits";
    QUANT_035 = "QUANT-035" "TQ2_0: (q - 1)·d; the four pairs of bits of 32 bytes are 32 elements \
         each",
        "ggml-quants.c: dequantize_row_tq2_0", "weights permuted";
    QUANT_039 = "QUANT-039" "MXFP4: E2M1 times 2^(e - 127); low nibbles are elements 0 to 15, high \
         nibbles 16 to 31",
        "ggml-quants.c: dequantize_row_mxfp4", "weights twice too large, or interleaved";
    QUANT_040 = "QUANT-040" "NVFP4: E2M1 times the UE4M3 scale of 16 elements; of 8 bytes, low \
         nibbles are the first 8 elements",
        "ggml-quants.c: dequantize_row_nvfp4", "weights twice too large, or permuted";
    QUANT_041 = "QUANT-041" "Q1_0: d if the bit is set, -d if not, the lowest bit first",
        "ggml-quants.c: dequantize_row_q1_0", "bits taken from the top, or a clear bit for zero";
    QUANT_042 = "QUANT-042" "Q2_0: (q - 1)·d, four neighbours a byte, the lowest bits first",
        "ggml-quants.c: dequantize_row_q2_0", "elements taken in the order of TQ2_0";
    QUANT_043 = "QUANT-043" "F8_E4M3: a number of OCP FP8 E4M3, without infinities; 0x7F and 0xFF \
         are NaN",
        "ggml-quants.c: dequantize_row_f8_e4m3", "NaN becomes 480, subnormal numbers are wrong";
}

/// The rule with this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

#[cfg(test)]
mod tests {
    use gguf_assay_format::{Status, TENSOR_TYPES};

    use super::*;

    /// A rule for each type that files may have, and for no other.
    #[test]
    fn one_for_each_type() {
        let types = TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed);
        let expected: Vec<_> =
            types.map(|t| (format!("QUANT-{:03}", t.id), t.name.to_owned())).collect();
        let name = |rule: &Rule| rule.title.split(':').next().unwrap().to_owned();
        let found: Vec<_> = RULES.iter().map(|rule| (rule.id.to_owned(), name(rule))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn somebody_asks_for_each_rule() {
        for rule in RULES {
            assert!(rule.ggml.clause().is_some() != rule.policy.clause().is_some(), "{rule}");
            assert_eq!(find(rule.id), Some(*rule));
        }
        assert_eq!(find("QUANT-004"), None);
    }
}
