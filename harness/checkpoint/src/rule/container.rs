//! Safetensors files, the index, and the folder that they are in.

use gguf_assay_format::Requirement::{Must, Silent};
use gguf_assay_format::Rule;

rules! {
    ST_001 = "ST-001" "a file starts with the length of its header, which fits the file",
        Must("safetensors README, Format: 8 bytes, u64 little-endian, the size of the header"), Silent,
        "a reader allocates by a claim, or reads past the end",
        "download the file again: it is cut, or it is another kind of file";
    ST_002 = "ST-002" "the header is a JSON object in UTF-8",
        Must("safetensors README, Format: a JSON UTF-8 string, which begins with {"), Silent,
        "names are taken for others, or the loader dies in its JSON library",
        "the file was damaged or written by something that is no safetensors writer";
}
