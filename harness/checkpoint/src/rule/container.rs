//! Safetensors files, the index, and the folder that they are in.

use gguf_assay_format::Requirement::{Must, Should, Silent};
use gguf_assay_format::Rule;

rules! {
    ST_001 = "ST-001" "a file starts with the length of its header, which fits the file",
        Must("safetensors README, Format: 8 bytes, N, an unsigned little-endian 64-bit integer, containing the size of the header"), Silent,
        "a reader allocates by a claim, or reads past the end",
        "download the file again: it is cut, or it is another kind of file";
    ST_002 = "ST-002" "a header has at most 100,000,000 bytes",
        Must("safetensors 0.8, tensor.rs, MAX_HEADER_SIZE"), Silent,
        "a reader spends memory and minutes on JSON before it sees a number",
        "download the file again; tensors by the million belong into several files";
    ST_003 = "ST-003" "a header begins with {",
        Must("safetensors README, Format: the header data MUST begin with a { character (0x7B)"), Silent,
        "a reader that looks at the first byte takes the file for another kind, safetensors 0.8 does not look",
        "write the header without anything in front of its object";
    ST_004 = "ST-004" "a header is UTF-8",
        Must("safetensors README, Format: a JSON UTF-8 string representing the header"), Silent,
        "names are replaced by others, or the loader dies in its JSON library",
        "download the file again, or write it with a safetensors library";
    ST_005 = "ST-005" "a header is a JSON object",
        Must("safetensors README, Format and Notes: the subset of JSON is decided by serde_json"), Silent,
        "the loader dies in its JSON library",
        "download the file again: it was damaged, or written by something that is no safetensors writer";
    ST_006 = "ST-006" "nothing but white space follows the object of a header",
        Must("safetensors README, Format: the header data MAY be trailing padded with whitespace (0x20)"), Silent,
        "two readers see two headers",
        "pad headers with spaces, not with zeros";
    ST_007 = "ST-007" "a header is padded with spaces",
        Should("safetensors README, Format: the header data MAY be trailing padded with whitespace (0x20)"), Silent,
        "none in safetensors 0.8, which takes tabs and ends of lines as well; the text allows spaces",
        "pad headers with spaces";
    ST_008 = "ST-008" "a key comes once in its object",
        Must("safetensors README, Notes: duplicate keys are disallowed"), Silent,
        "one reader takes the first and another the last: two models in one file",
        "write each tensor once; if the two differ, find out which was meant";
    ST_009 = "ST-009" "__metadata__ maps strings to strings",
        Must("safetensors README, Format: arbitrary JSON is not allowed, all values must be strings"), Silent,
        "the whole file is refused for a note in it",
        "write numbers and lists of the metadata as strings";
    ST_010 = "ST-010" "a tensor is an object with dtype, shape and data_offsets",
        Must("safetensors README, Format: {\"TENSOR_NAME\": {\"dtype\", \"shape\", \"data_offsets\"}}"), Silent,
        "the tensor cannot be found, or the loader dies in its JSON library",
        "write the file with a safetensors library";
    ST_011 = "ST-011" "a dtype is one that safetensors has",
        Must("safetensors 0.8, tensor.rs, Dtype"), Silent,
        "the whole file is refused for one tensor",
        "look for a newer safetensors that has the type, or store the bytes as U8";
    ST_012 = "ST-012" "a shape is a list of whole numbers below 2^64",
        Must("safetensors 0.8, tensor.rs, TensorInfo: shape is Vec<usize>"), Silent,
        "the whole file is refused, or a dimension wraps around",
        "write the file with a safetensors library";
    ST_013 = "ST-013" "data_offsets are two whole numbers below 2^64, the begin not after the end",
        Must("safetensors README, Format: BEGIN as the starting offset and END as the one-past offset"), Silent,
        "a length below zero, which as an unsigned number is a huge one",
        "write the file with a safetensors library";
    ST_014 = "ST-014" "the bytes of a tensor are in the file",
        Must("safetensors 0.8, tensor.rs, SafeTensors::read_metadata: MetadataIncompleteBuffer"), Silent,
        "a reader reads past the end, or dies when it first touches the tensor",
        "download the file again: it is cut";
    ST_015 = "ST-015" "a tensor has as many bytes as its dtype and shape say",
        Must("safetensors 0.8, tensor.rs, Metadata::validate: TensorInvalidInfo, MisalignedSlice, ValidationOverflow"), Silent,
        "a reader that goes by the shape reads bytes of other tensors",
        "compare dtype and shape with what was meant, and write the file again";
    ST_016 = "ST-016" "no two tensors share bytes",
        Must("safetensors 0.8, tensor.rs, Metadata::validate: InvalidOffset"), Silent,
        "to change one tensor changes another",
        "write tied tensors once, under one name";
    ST_017 = "ST-017" "there are no bytes between two tensors",
        Must("safetensors README, Notes: the byte buffer needs to be entirely indexed, and cannot contain holes"), Silent,
        "the file can be another kind of file at the same time, or hide data",
        "write the file with a safetensors library, which aligns nothing but the header";
    ST_018 = "ST-018" "there are no bytes after the last tensor",
        Must("safetensors README, Notes: the byte buffer needs to be entirely indexed, and cannot contain holes"), Silent,
        "the file can be another kind of file at the same time, or hide data",
        "cut the file after the last tensor, if nothing else is missing";
    ST_019 = "ST-019" "an entry has no fields besides dtype, shape and data_offsets",
        Should("safetensors README, Format; safetensors 0.8 passes over others"), Silent,
        "what somebody wrote there is read by nobody",
        "put it into __metadata__";
    ST_020 = "ST-020" "names of tensors are not empty and have no control characters",
        Silent, Should("names reach terminals, logs and pages"),
        "a name that moves the cursor looks like another one in a log",
        "rename the tensor; safetensors 0.8 takes any name";
    ST_021 = "ST-021" "rows of elements below a byte are whole bytes",
        Silent, Must("torch has F4 as pairs of elements in the last dimension; safetensors 0.8 looks at the whole tensor only"),
        "rows begin in the middle of a byte, where no loader looks for them",
        "pad the last dimension, or store the packed bytes as U8";

    CKPT_001 = "CKPT-001" "the files can be read",
        Silent, Must("what cannot be read cannot be judged"),
        "the loader dies where it gets to the file",
        "look at the rights of the file and at the disk";
    CKPT_002 = "CKPT-002" "there is a config.json",
        Silent, Must("transformers 5.24.0, PretrainedConfig: config.json says what the model is"),
        "no loader knows what the tensors are for",
        "copy config.json from where the checkpoint comes from";
    CKPT_003 = "CKPT-003" "a config is a JSON object in UTF-8",
        Silent, Must("transformers 5.24.0, configuration_utils.py, _dict_from_json_file"),
        "the loader dies in its JSON library, or goes on without what the config says",
        "repair the config at the place that is named, or download it again";
    CKPT_004 = "CKPT-004" "a config has at most 64 MiB",
        Silent, Must("the largest that are published have a few megabytes"),
        "a reader spends memory and minutes before it sees what the model is",
        "download the file again: it is another kind of file";
    CKPT_005 = "CKPT-005" "a key comes once in an object of a config",
        Silent, Should("RFC 8259, section 4: the names within an object should be unique"),
        "Python takes the last, other readers the first: two configs in one file",
        "remove the one that is not meant";
    CKPT_006 = "CKPT-006" "a config is JSON, without Python's NaN and Infinity",
        Silent, Should("RFC 8259, section 6: values such as Infinity and NaN are not permitted"),
        "Python reads it, and nearly nothing else does",
        "save the config with transformers 5, which writes such numbers otherwise";
    CKPT_007 = "CKPT-007" "there are weights in safetensors files",
        Silent, Must("transformers 5.24.0, modeling_utils.py, _get_resolved_checkpoint_files"),
        "there is nothing to load",
        "download the weights as well";
    CKPT_008 = "CKPT-008" "the weights are model.safetensors, or files that model.safetensors.index.json names",
        Silent, Should("transformers 5.24.0, modeling_utils.py, _get_resolved_checkpoint_files"),
        "transformers finds no weights; loaders that take whatever files there are find them",
        "name the file model.safetensors, or write the index";
    CKPT_009 = "CKPT-009" "an index has metadata, and a weight_map from names of tensors to names of files",
        Silent, Must("transformers 5.24.0, utils/hub.py, get_checkpoint_shard_files"),
        "the loader dies at the index",
        "write the index again with save_pretrained";
    CKPT_010 = "CKPT-010" "an index names files of its own folder",
        Silent, Must("a name with a path in it reaches files that the checkpoint has no business with"),
        "whoever follows the index reads files elsewhere on the machine",
        "name files without a path; where that is not what you wrote, do not load the checkpoint";
    CKPT_011 = "CKPT-011" "each file that the index or the config names is there",
        Silent, Must("transformers 5.24.0, utils/hub.py, get_checkpoint_shard_files"),
        "the loader dies in the middle of loading, or leaves layers random",
        "download the file; if there is none of that name, the index is older than the files";
    CKPT_012 = "CKPT-012" "a file has each tensor that the index says is in it",
        Silent, Must("a reader that looks a tensor up in the index does not find it"),
        "a layer is missing, or the loader dies in the middle of loading",
        "write the index again; it is older than the files, or belongs to another checkpoint";
    CKPT_013 = "CKPT-013" "the index has each tensor of its files",
        Silent, Must("a reader that looks a tensor up in the index does not find it"),
        "a loader that goes by the index leaves the tensor out, one that goes by the files takes it",
        "write the index again; it is older than the files";
    CKPT_014 = "CKPT-014" "a tensor is in one file",
        Silent, Must("which of the two is taken depends on the order in which a loader reads files"),
        "two models in one checkpoint",
        "remove one of the two; a stale file may have been left from an earlier save";
    CKPT_015 = "CKPT-015" "metadata.total_size of an index is the sum of its tensors' bytes",
        Silent, Should("huggingface_hub, StateDictSplit.metadata: total_size"),
        "a loader that plans memory by it plans wrongly",
        "write the index again";
    CKPT_016 = "CKPT-016" "numbered files are all there, and the index names all of them",
        Silent, Must("-NNNNN-of-MMMMM says how many there are"),
        "layers are missing without anything that says so",
        "download what is missing, and remove what is left of an earlier save";
    CKPT_017 = "CKPT-017" "there are no safetensors files that are not loaded",
        Silent, Should("transformers 5.24.0, modeling_utils.py, _get_resolved_checkpoint_files takes model.safetensors or what the index names"),
        "loaders that take whatever files there are read tensors twice",
        "remove the file, or move it into a folder of its own";
    CKPT_018 = "CKPT-018" "there is model.safetensors, or an index of other files",
        Silent, Must("transformers 5.24.0 takes model.safetensors and does not look at the index"),
        "a loader that goes by the index loads another model",
        "remove the one that is not meant";
}

/// What safetensors 0.8 accepts in some form, though its own text or this project does not: white
/// space in front of the object (ST-003); a tensor, a key of `__metadata__` or a field that nobody
/// knows that comes again (ST-008); `"__metadata__": null` (ST-009); the list of an entry's fields in
/// place of an object (ST-010); `{"U8": null}` for `"U8"` (ST-011); rows that are no whole bytes
/// (ST-021). It refuses all other faults of a file.
pub static ACCEPTED_BY_SAFETENSORS: [&Rule; 6] =
    [&ST_003, &ST_008, &ST_009, &ST_010, &ST_011, &ST_021];
