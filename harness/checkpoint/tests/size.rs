//! A checkpoint of 400 GB: 200 files, 100,000 tensors. The files are sparse; nothing of them but the
//! headers is there, and nothing else is read. `cargo test -p gguf-assay-checkpoint --test size --
//! --nocapture` prints the time and the memory that it takes.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::time::Instant;

use gguf_assay_checkpoint::{Checkpoint, Folder};

const FILES: u64 = 200;
const TENSORS: u64 = 100_000;
/// 2000 MB a file.
const DATA: u64 = 2_000_000_000;

#[test]
fn headers_of_400_gb() {
    let folder = tempfile::tempdir().unwrap();
    let of_file = TENSORS / FILES;
    let bytes = DATA / of_file;
    let mut weight_map = String::new();
    for file in 1..=FILES {
        let name = format!("model-{file:05}-of-{FILES:05}.safetensors");
        let mut header = String::new();
        for tensor in 0..of_file {
            let key = format!("model.layers.{file}.mlp.experts.{tensor}.down_proj.qweight");
            let (start, end) = (tensor * bytes, (tensor + 1) * bytes);
            let rows = bytes / 4 / 1_000;
            let comma = if tensor == 0 { '{' } else { ',' };
            write!(
                header,
                r#"{comma}"{key}":{{"dtype":"I32","shape":[{rows},1000],"data_offsets":[{start},{end}]}}"#
            )
            .unwrap();
            let comma = if weight_map.is_empty() { "" } else { "," };
            write!(weight_map, r#"{comma}"{key}":"{name}""#).unwrap();
        }
        header.push('}');
        let length = u64::try_from(header.len()).unwrap();
        let mut shard = File::create(folder.path().join(name)).unwrap();
        shard.write_all(&length.to_le_bytes()).unwrap();
        shard.write_all(header.as_bytes()).unwrap();
        shard.set_len(8 + length + DATA).unwrap();
    }
    let total = FILES * DATA;
    let index = format!(r#"{{"metadata":{{"total_size":{total}}},"weight_map":{{{weight_map}}}}}"#);
    fs::write(folder.path().join("model.safetensors.index.json"), index).unwrap();
    fs::write(folder.path().join("config.json"), "{}").unwrap();
    drop(weight_map);

    let start = Instant::now();
    let checkpoint = Checkpoint::open(Folder::new(folder.path())).unwrap();
    let took = start.elapsed();
    assert_eq!(checkpoint.findings, []);
    assert_eq!(checkpoint.shards.len() as u64, FILES);
    assert_eq!(checkpoint.tensors().count() as u64, TENSORS);
    let sum: u64 = checkpoint.tensors().map(|tensor| tensor.len).sum();
    assert_eq!(sum, total);
    let last = format!("model.layers.{FILES}.mlp.experts.{}.down_proj.qweight", of_file - 1);
    assert_eq!(checkpoint.read_part(&last, bytes - 16, 99).unwrap(), [0; 16]);
    println!("{TENSORS} tensors of {FILES} files, {total} bytes: {} ms", took.as_millis());
    // Where the system says how much this process has had at most.
    if let Ok(status) = fs::read_to_string("/proc/self/status")
        && let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))
    {
        println!("peak memory: {}", peak.trim());
        let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 1 << 20, "more than 1 GiB");
    }
}
