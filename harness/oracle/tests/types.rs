//! ggml's type table against the ids in `ggml.h` and the block structs in `ggml-common.h`.

use gguf_assay_oracle::{TypeInfo, type_count, type_info};

/// Id, name, elements in a block, bytes in a block, quantized.
const TYPES: [(i32, &str, u64, u64, bool); 35] = [
    (0, "f32", 1, 4, false),
    (1, "f16", 1, 2, false),
    (2, "q4_0", 32, 18, true),
    (3, "q4_1", 32, 20, true),
    (6, "q5_0", 32, 22, true),
    (7, "q5_1", 32, 24, true),
    (8, "q8_0", 32, 34, true),
    (9, "q8_1", 32, 36, true),
    (10, "q2_K", 256, 84, true),
    (11, "q3_K", 256, 110, true),
    (12, "q4_K", 256, 144, true),
    (13, "q5_K", 256, 176, true),
    (14, "q6_K", 256, 210, true),
    (15, "q8_K", 256, 292, true),
    (16, "iq2_xxs", 256, 66, true),
    (17, "iq2_xs", 256, 74, true),
    (18, "iq3_xxs", 256, 98, true),
    (19, "iq1_s", 256, 50, true),
    (20, "iq4_nl", 32, 18, true),
    (21, "iq3_s", 256, 110, true),
    (22, "iq2_s", 256, 82, true),
    (23, "iq4_xs", 256, 136, true),
    (24, "i8", 1, 1, false),
    (25, "i16", 1, 2, false),
    (26, "i32", 1, 4, false),
    (27, "i64", 1, 8, false),
    (28, "f64", 1, 8, false),
    (29, "iq1_m", 256, 56, true),
    (30, "bf16", 1, 2, false),
    (34, "tq1_0", 256, 54, true),
    (35, "tq2_0", 256, 66, true),
    (39, "mxfp4", 32, 17, true),
    (40, "nvfp4", 64, 36, true),
    (41, "q1_0", 128, 18, true),
    (42, "q2_0", 64, 18, true),
];

const REMOVED: [i32; 8] = [4, 5, 31, 32, 33, 36, 37, 38];

#[test]
fn table() {
    for (id, name, block_len, block_bytes, is_quantized) in TYPES {
        let expected = TypeInfo { name, block_len, block_bytes, is_quantized };
        assert_eq!(type_info(id), Some(expected), "id {id}");
    }
}

#[test]
fn removed_ids() {
    for id in REMOVED {
        let info = type_info(id).unwrap();
        assert_eq!((info.block_len, info.block_bytes, info.is_quantized), (0, 0, false), "id {id}");
    }
    assert_eq!(TYPES.len() + REMOVED.len(), 43);
}

#[test]
fn ends() {
    // From 43 on, what is there depends on the version.
    assert!(type_count() >= 43);
    assert!(type_info(type_count() - 1).is_some());
    for id in [type_count(), -1, i32::MIN, i32::MAX] {
        assert_eq!(type_info(id), None);
    }
}

/// The table of `gguf-assay-format` is ggml's: same ids, same names, same blocks.
#[test]
fn our_table_is_ggmls() {
    for ours in gguf_assay_format::TENSOR_TYPES {
        let ggml = type_info(ours.id as i32).unwrap();
        let block = (u64::from(ours.block_len), u64::from(ours.block_bytes));
        assert_eq!(block, (ggml.block_len, ggml.block_bytes), "{ours}");
        if ours.status != gguf_assay_format::Status::Removed {
            assert_eq!(ours.name, ggml.name.to_ascii_uppercase(), "{ours}");
        }
    }
    assert_eq!(gguf_assay_format::TENSOR_TYPES.len() as i32, type_count());
}
