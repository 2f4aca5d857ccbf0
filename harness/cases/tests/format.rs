//! The case format: what is wrong with a case is told, by place.

use std::fs;

use gguf_assay_cases::{CaseError, Corpus, lint};

/// A case with these lines added, from a folder with the one file `read/area.toml`.
fn load(lines: &str) -> Result<Corpus, CaseError> {
    let case = format!(
        r#"
[[case]]
id = "read/area/slug"
rule = "META-006"
summary = "something"
source = "somewhere"
metadata = [{{ key = "general.architecture", string = "llama" }}, {{ key = "a", u32 = 1 }}]
tensors = [{{ name = "t", type = "F32", dims = [8] }}]
verdict = {{ spec = "accept", ggml = "accept" }}
{lines}
"#
    );
    load_file(&case)
}

fn load_file(text: &str) -> Result<Corpus, CaseError> {
    load_as("read/area.toml", text)
}

fn load_as(name: &str, text: &str) -> Result<Corpus, CaseError> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("gguf-assay-cases-{}-{next}", std::process::id()));
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    let corpus = Corpus::from_dir(&dir);
    fs::remove_dir_all(dir).unwrap();
    corpus
}

/// What the loader, the builder or the linter says about a case.
fn complaint(lines: &str) -> String {
    let corpus = match load(lines) {
        Ok(corpus) => corpus,
        Err(error) => return error.to_string(),
    };
    let errors: Vec<String> = lint(&corpus, false).iter().map(ToString::to_string).collect();
    errors.join("\n")
}

#[test]
fn a_sound_case_is_sound() {
    assert_eq!(complaint(""), "");
    assert_eq!(complaint("fault = { append = { hex = \"00\" } }"), "");
}

#[test]
fn unknown_fields_are_refused() {
    for (lines, name) in [
        ("colour = \"red\"", "colour"),
        ("fault = { at = \"header.version\", u32 = 4, why = \"x\" }", "why"),
        ("fault = { cut = \"end\", minus = 1 }", "minus"),
        ("expect = { tensor = [] }", "tensor"),
        ("value = { none = \"x\" }", "none"),
        ("flags = [\"huge\"]", "huge"),
    ] {
        let complaint = complaint(lines);
        assert!(complaint.contains(name), "{lines}: {complaint}");
    }
}

#[test]
fn faults_that_cannot_be_are_told() {
    for (fault, complaint_part) in [
        ("{ at = \"metadata[9].key\", bytes = \"x\" }", "no field `metadata[9].key`"),
        ("{ at = \"header.version\", u64 = 4 }", "has 4 bytes, not 8"),
        ("{ cut = \"end\" }", "not within the file"),
        ("{ swap = [\"header.version\", \"header.kv_count\"] }", "differ in width"),
        ("{ key = \"metadata[7]\", to = \"b\" }", "out of range"),
        ("{ key = \"tensors[0]\", to = \"b\" }", "not metadata[N]"),
        ("{ type = \"tensors[0]\", to = \"q4_k\" }", "no tensor type"),
        ("{ explode = true }", "no kind of fault"),
        ("{ at = \"header.version\", u32 = 3 }", "changes nothing"),
    ] {
        let complaint = complaint(&format!("fault = {fault}"));
        assert!(complaint.contains(complaint_part), "{fault}: {complaint}");
    }
}

#[test]
fn values_that_cannot_be_are_told() {
    for (entry, complaint_part) in [
        ("{ key = \"b\", u8 = 256 }", "does not fit"),
        ("{ key = \"b\", u64 = \"1x\" }", "not an integer"),
        ("{ key = \"b\", f32 = \"0x12\" }", "8 hex digits"),
        ("{ key = \"b\", string = { hex = \"0\" } }", "two digits"),
        ("{ key = \"b\" }", "no value"),
        ("{ key = \"b\", u8 = 1, i8 = 1 }", "two values"),
        ("{ key = \"b\", uint = 1 }", "unknown field `uint`"),
        ("{ key = \"b\", array = { nest = 101, u8 = [] } }", "more than 100"),
    ] {
        let text = format!(
            "[[case]]\nid = \"read/area/slug\"\nrule = \"META-006\"\nsummary = \"s\"\n\
             source = \"s\"\nmetadata = [{entry}]\nverdict = {{ spec = \"accept\", ggml = \"accept\" }}"
        );
        let corpus = load_file(&text).unwrap();
        let errors = lint(&corpus, false);
        let complaint = errors.iter().map(ToString::to_string).collect::<String>();
        assert!(complaint.contains(complaint_part), "{entry}: {complaint}");
    }
}

#[test]
fn what_the_linter_finds() {
    let case = |id: &str, extra: &str| {
        format!(
            "[[case]]\nid = \"{id}\"\nrule = \"META-006\"\nsummary = \"s\"\nsource = \"s\"\n\
             metadata = [{{ key = \"general.architecture\", string = \"llama\" }}]\n{extra}\n"
        )
    };
    let accept = "verdict = { spec = \"accept\", ggml = \"accept\" }";
    let reject = "verdict = { spec = \"reject\", ggml = \"accept\" }";
    for (text, complaint_part) in [
        (case("read/area/a", accept) + &case("read/area/a", accept), "used twice"),
        (case("read/other/a", accept), "for another area"),
        (case("read/area/A", accept), "a-z"),
        (case("read/area/a", reject), "does not have to accept"),
        (
            case("read/area/a", accept).replace("general.architecture", "general.name"),
            "without its fault, spec refuses it: META-014",
        ),
        (case("read/area/a", accept).replace("summary = \"s\"", "summary = \"s.\""), "full stop"),
        (case("read/area/a", accept).replace("source = \"s\"", "source = \"\""), "no source"),
        (
            case("read/area/a", "verdict = { spec = { either = \"\" }, ggml = \"accept\" }"),
            "has no reason",
        ),
    ] {
        let errors = lint(&load_file(&text).unwrap(), false);
        let complaint = errors.iter().map(ToString::to_string).collect::<String>();
        assert!(complaint.contains(complaint_part), "{complaint_part}: {complaint}");
    }
}

/// By hand: a 24-byte header, 8 + 1 bytes of key, 4 of type, 4 of value.
#[test]
fn a_sweep_cuts_before_each_field_and_one_byte_behind() {
    let text = "[[sweep]]\nid = \"read/area/s\"\nsummary = \"s\"\nsource = \"s\"\n\
                metadata = [{ key = \"a\", u32 = 1 }]";
    let corpus = load_file(text).unwrap();
    let lengths: Vec<u64> = corpus.cases.iter().map(|case| case.build().unwrap().len()).collect();
    assert_eq!(lengths, [0, 1, 4, 5, 8, 9, 16, 17, 24, 25, 32, 33, 34, 37, 38]);
    assert_eq!(corpus.cases[1].id, "read/area/s-at-header-magic-plus-1");
    assert_eq!(corpus.cases[0].rule.id, "FILE-001");
    assert!(corpus.cases[1..].iter().all(|case| case.rule.id == "FILE-002"));
}

#[test]
fn block_cases_that_cannot_be_are_told() {
    let sound = r#"
[[block]]
id = "dequantize/q8-0/slug"
rule = "QUANT-008"
summary = "something"
source = "somewhere"
type = "Q8_0"
bytes = [{ hex = "003c" }, { hex = "01", count = 32 }]
values = [[32, 1.0]]
"#;
    let complaint = |text: &str| match load_as("dequantize/q8-0.toml", text) {
        Err(error) => error.to_string(),
        Ok(corpus) => lint(&corpus, false).iter().map(ToString::to_string).collect(),
    };
    assert_eq!(complaint(sound), "");
    for (from, to, complaint_part) in [
        ("summary =", "colour = \"red\"\nsummary =", "colour"),
        ("\"Q8_0\"", "\"Q8\"", "no tensor type"),
        ("count = 32 }", "count = 31 }", "no whole number of blocks"),
        ("[[32, 1.0]]", "[[31, 1.0]]", "31 values for 32 elements"),
        ("[[32, 1.0]]", "[[32, 0.1]]", "not exactly an f32"),
        ("[[32, 1.0]]", "[[32, \"0x7fc0\"]]", "8 hex digits"),
        ("[[32, 1.0]]", "[32, 1.0]", "a run is"),
        ("[[32, 1.0]]", "[[32, 1.0]]\nor = [[32, 2.0]]", "needs an either-verdict"),
        ("\"QUANT-008\"", "\"QUANT-009\"", "the rule of Q8_0 is QUANT-008"),
        ("dequantize/q8-0", "read/q8-0", "operation"),
    ] {
        let complaint = complaint(&sound.replace(from, to));
        assert!(complaint.contains(complaint_part), "{to}: {complaint}");
    }
}

/// What is wrong with the text of a case of names is told.
#[test]
fn cases_of_names_that_are_not_sound() {
    let sound = r#"
[[names]]
id = "names/area/slug"
rule = "NAMES-003"
summary = "no keys"
source = "llama.cpp"
pair = "llama"
to = "transformers"
edit = [{ remove = "blk.0.attn_k.weight" }]
verdict = "reject"
says = ["blk.0.attn_k.weight"]
"#;
    let complaint = |text: &str| match Corpus::from_toml("names/area.toml", text) {
        Err(error) => error.to_string(),
        Ok(corpus) => lint(&corpus, false).iter().map(ToString::to_string).collect(),
    };
    assert_eq!(complaint(sound), "");
    for (from, to, part) in [
        ("pair = \"llama\"", "pair = \"alpaca\"", "no pair `alpaca`"),
        ("blk.0.attn_k.weight\" }", "blk.9.attn_k.weight\" }", "changes nothing"),
        ("{ remove = ", "{ delete = ", "needs a `key`"),
        ("weight\" }]", "weight\", to = \"x\" }]", "unknown field `to`"),
        ("to = \"transformers\"", "to = \"gguf\"", "changes nothing"),
        ("{ remove = \"blk.0.attn_k.weight\" }", "{ field = \"a\", value = 1 }", "no fields"),
        ("edit = ", "config = [\"heads\"]\nedit = ", "the config has no heads"),
        ("edit = ", "without = [\"a.weight\"]\nedit = ", "none of the names"),
        ("edit = [{ remove = \"blk.0.attn_k.weight\" }]", "", "nothing is changed"),
        ("says = [\"blk.0.attn_k.weight\"]", "", "has to name"),
        ("verdict = \"reject\"", "", "has to name"),
        ("NAMES-003", "META-006", "one of names"),
        ("names/area/slug", "map_names/area/slug", "operation"),
    ] {
        let complaint = complaint(&sound.replacen(from, to, 1));
        assert!(complaint.contains(part), "{to}: {complaint}");
    }
}

/// A report of one part of the cases says by it of which cases it is a part.
#[test]
fn a_digest_is_of_the_cases_and_not_of_their_order() {
    let more = |summary: &str| {
        let text = format!(
            "[[case]]\nid = \"read/mine/one\"\nrule = \"META-006\"\nsummary = \"{summary}\"\n\
             source = \"the text\"\nmetadata = []\nverdict = {{ spec = \"accept\", ggml = \"accept\" }}\n"
        );
        Corpus::from_toml("mine.toml", &text).unwrap()
    };
    let join = |mut one: Corpus, other: Corpus| {
        one.extend(other);
        one.digest()
    };
    let embedded = Corpus::embedded;
    let joined = join(embedded(), more("one"));
    assert_eq!(joined, join(more("one"), embedded()));
    assert_eq!(embedded().digest(), embedded().digest());
    let mut fewer = embedded();
    fewer.cases.retain(|case| case.area() != "endianness");
    for other in [embedded().digest(), fewer.digest(), join(embedded(), more("another"))] {
        assert_ne!(joined, other);
    }
    assert_ne!(embedded().digest(), fewer.digest());
}

/// A base, and a case of it with these lines.
fn checkpoint_case(lines: &str) -> String {
    format!(
        r#"
[[base]]
name = "small"
config = {{ model_type = "llama", quantization_config = {{ quant_method = "gptq", bits = 4, group_size = 8, sym = true, ignore = ["a", "b"] }} }}
tensors = [
    {{ name = "m.{{0..1}}.qweight", dtype = "I32", shape = [1, 8], repeat = "10325476" }},
    {{ name = "m.{{0..1}}.qzeros", dtype = "I32", shape = [1, 1], repeat = "77" }},
    {{ name = "m.{{0..1}}.scales", dtype = "F16", shape = [1, 8], f16 = 1.0 }},
    {{ name = "m.{{0..1}}.g_idx", dtype = "I32", shape = [8], groups = 8 }},
]
[[checkpoint]]
id = "checkpoint/area/slug"
rule = "METHOD-003"
summary = "something"
source = "somewhere"
base = "small"
{lines}
"#
    )
}

/// The files of a case of [`checkpoint_case`] with these lines, or what is wrong with its text.
fn checkpoint_files(lines: &str) -> Result<std::collections::BTreeMap<String, Vec<u8>>, String> {
    let corpus = Corpus::from_toml("checkpoint/area.toml", &checkpoint_case(lines));
    let files = corpus.and_then(|corpus| corpus.checkpoints[0].build());
    files.map(|files| files.0).map_err(|error| error.to_string())
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).unwrap()
}

/// The header of a safetensors file, and its data.
fn header(bytes: &[u8]) -> (serde_json::Value, &[u8]) {
    let (length, rest) = bytes.split_at(8);
    let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
    (json(&rest[..length]), &rest[length..])
}

/// By hand, what each change makes of the files.
#[test]
fn changes_of_checkpoints() {
    let config = |lines: &str| json(&checkpoint_files(lines).unwrap()["config.json"]);
    let quantization = |lines: &str| config(lines)["quantization_config"].clone();
    let tensors = |lines: &str| header(&checkpoint_files(lines).unwrap()["model.safetensors"]).0;
    let fault = |text: &str| format!("fault = {text}");

    assert_eq!(quantization(&fault("{ set = \"quantization_config.bits\", to = 8 }"))["bits"], 8);
    let null = "{ set = \"quantization_config.bits\", json = \"null\" }";
    assert!(quantization(&fault(null))["bits"].is_null());
    let removed = quantization(&fault("{ remove = \"quantization_config.bits\" }"));
    assert!(removed.get("bits").is_none());
    for (change, list) in [
        ("{ set = \"quantization_config.ignore.1\", to = \"c\" }", &["a", "c"][..]),
        ("{ set = \"quantization_config.ignore.2\", to = \"c\" }", &["a", "b", "c"]),
        ("{ remove = \"quantization_config.ignore.0\" }", &["b"]),
    ] {
        assert_eq!(quantization(&fault(change))["ignore"], serde_json::json!(list), "{change}");
    }
    let dotted = "{ set = [\"quantization_config\", \"a.b\"], to = { c = 1 } }";
    assert_eq!(quantization(&fault(dotted))["a.b"]["c"], 1);

    // 2 modules of 8 + 1 words, 8 halves and 8 words: 84 bytes each.
    let sound = checkpoint_files("").unwrap();
    let (names, data) = header(&sound["model.safetensors"]);
    assert_eq!((names.as_object().unwrap().len(), data.len()), (1 + 8, 2 * (32 + 4 + 16 + 32)));
    assert_eq!(names["m.1.qweight"]["data_offsets"], serde_json::json!([32, 64]));
    assert_eq!(data[..8], [0x10, 0x32, 0x54, 0x76, 0x10, 0x32, 0x54, 0x76]);
    assert_eq!(
        tensors(&fault("{ tensor = \"m.0.*\", drop = true }")).as_object().unwrap().len(),
        5
    );
    let renamed = tensors(&fault("{ tensor = \"m.{0,1}.qzeros\", rename = \"n.zeros\" }"));
    assert!(renamed.get("m.0.qzeros").is_none() && renamed.get("n.zeros").is_some());
    let copied = tensors(&fault("{ tensor = \"m.0.*\", copy = \"m.2.*\" }"));
    assert_eq!(copied["m.2.scales"]["shape"], copied["m.0.scales"]["shape"]);
    let other = tensors(&fault("{ tensor = \"*.qweight\", shape = [2, 8], dtype = \"I64\" }"));
    assert_eq!(other["m.1.qweight"]["data_offsets"], serde_json::json!([128, 256]));
    let added = tensors(&fault("{ add = { name = \"b\", dtype = \"U8\", text = \"{}\" } }"));
    assert_eq!(added["b"]["shape"], serde_json::json!([2]));

    let split = "edit = [{ tensor = \"m.1.*\", file = \"b.safetensors\" }]\n";
    let files = checkpoint_files(split).unwrap();
    let index = json(&files["model.safetensors.index.json"]);
    assert_eq!(index["metadata"]["total_size"], 168);
    assert_eq!(index["weight_map"]["m.1.scales"], "b.safetensors");
    assert_eq!(header(&files["b.safetensors"]).1.len(), 84);
    let index = |fault: &str| {
        let files = checkpoint_files(&format!("{split}fault = {fault}")).unwrap();
        json(&files["model.safetensors.index.json"])["weight_map"].clone()
    };
    assert_eq!(index("{ index = \"m.1.scales\", to = \"../c\" }")["m.1.scales"], "../c");
    assert!(index("{ index = \"m.1.scales\", drop = true }").get("m.1.scales").is_none());

    let model = |text: &str| checkpoint_files(&fault(text)).unwrap()["model.safetensors"].clone();
    let whole = &sound["model.safetensors"];
    assert_eq!(model("{ cut = 7 }"), whole[..7]);
    assert_eq!(model("{ cut = -1 }"), whole[..whole.len() - 1]);
    assert_eq!(model("{ append = { hex = \"00\" } }"), [&whole[..], &[0]].concat());
    assert_eq!(model("{ at = 8, bytes = \"[\" }")[8], b'[');
    assert_eq!(model("{ length = 5 }")[..8], 5u64.to_le_bytes());
    let length = u64::from_le_bytes(whole[..8].try_into().unwrap());
    assert_eq!(model("{ length_plus = -8 }")[..8], (length - 8).to_le_bytes());
    let header_text = model("{ header = '\"__metadata__\":{\"format\":\"pt\"},', with = \"\" }");
    assert!(header(&header_text).0.get("__metadata__").is_none());
    assert_eq!(model("{ write = \"model.safetensors\", bytes = \"x\" }"), b"x");
    let dropped = checkpoint_files(&fault("{ drop = \"config.json\" }")).unwrap();
    assert!(!dropped.contains_key("config.json"));
    let renamed = fault("{ rename = \"config.json\", to = \"x.json\" }");
    assert_eq!(checkpoint_files(&renamed).unwrap()["x.json"], sound["config.json"]);
}

/// What is wrong with the text of a case about a checkpoint is told.
#[test]
fn cases_of_checkpoints_that_are_not_sound() {
    let complaint =
        |lines: &str| match Corpus::from_toml("checkpoint/area.toml", &checkpoint_case(lines)) {
            Err(error) => error.to_string(),
            Ok(corpus) => lint(&corpus, false).iter().map(ToString::to_string).collect(),
        };
    let accepted = "expect = { method = \"gptq\" }";
    assert_eq!(complaint(accepted), "");
    let rejected = |fault: &str| {
        complaint(&format!("fault = {fault}\nverdict = \"reject\"\nsays = [\"bits\"]"))
    };
    assert_eq!(rejected("{ set = \"quantization_config.bits\", to = \"four\" }"), "");
    for (fault, part) in [
        ("{ set = \"quantization_config.bits\", to = 4 }", "changes nothing"),
        ("{ set = \"quantization_config.bits\", to = 8 }", "it does not break METHOD-003, but"),
        ("{ set = \"quantization_config.sym\", to = \"yes\" }", "`says` is not in what is found"),
        ("{ set = \"model_type\", to = \"x\" }", "nothing is found to be wrong"),
        ("{ set = \"a.b\", to = 1 }", "there is no `a`"),
        ("{ set = \"model_type\" }", "needs `to`"),
        ("{ set = \"x\", to = 1, file = \"x.json\" }", "there is no `x.json`"),
        ("{ remove = \"x\" }", "there is no `x`"),
        (
            "{ remove = \"quantization_config.ignore.2\" }",
            "there is no `quantization_config.ignore",
        ),
        ("{ explode = true }", "no kind of change"),
        ("{ tensor = \"n\", drop = true }", "no tensor `n`; there are m.0.qweight"),
        ("{ tensor = \"m.0.scales\" }", "what is changed"),
        ("{ tensor = \"m.0.scales\", colour = 1 }", "unknown field `colour`"),
        ("{ tensor = \"m.0.scales\", dtype = \"F8\" }", "there is no dtype `F8`"),
        ("{ tensor = \"m.0.scales\", f16 = [1.0] }", "2 bytes of data, and its shape asks for 16"),
        ("{ tensor = \"m.0.scales\", f16 = 0.1 }", "not exactly"),
        ("{ tensor = \"m.0.scales\", hex = \"00\", text = \"a\" }", "one kind of data"),
        ("{ add = { name = \"x\", dtype = \"F16\" } }", "tensor `x`: no `shape`"),
        ("{ index = \"m.0.scales\", drop = true }", "there is no index"),
        ("{ header = \"?\", with = \"y\" }", "`?` is 0 times"),
        ("{ header = \"m.0\", with = \"y\" }", "`m.0` is 4 times"),
        ("{ header = \"x\", with = \"y\", file = \"a\" }", "there is no file for"),
        ("{ cut = 100000 }", "cannot be cut"),
        ("{ at = 100000, bytes = \"x\" }", "shorter"),
        ("{ drop = \"x\" }", "there is no `x`"),
        ("{ write = \"../x\", bytes = \"\" }", "not the name of a file"),
    ] {
        let complaint = rejected(fault);
        assert!(complaint.contains(part), "{fault}: {complaint}");
    }
    for (lines, part) in [
        ("", "`expect` has what is compared"),
        ("verdict = \"reject\"", "there is no fault"),
        ("module = \"m.0\"", "goes with a `module`"),
        ("expect = { numbers = [1.0] }", "for op = \"unpack\""),
        ("expect = { colour = 1 }", "colour"),
        ("edit = [{ cut = 1 }]\nexpect = { method = \"gptq\" }", "only a fault"),
        (
            "edit = [{ set = \"quantization_config.bits\", to = 8 }]\nexpect = { bits = 8 }",
            "without its fault, it is not in order",
        ),
        ("op = \"unpack\"\nmodule = \"m.0\"\nexpect = { method = \"gptq\" }", "to unpack has"),
        (
            "op = \"unpack\"\nmodule = \"m.0\"\nexpect = { shape = [2, 2], numbers = [[3, 1.0]] }",
            "3 numbers for the shape [2, 2]",
        ),
    ] {
        let complaint = complaint(lines);
        assert!(complaint.contains(part), "{lines}: {complaint}");
    }
    let sound = checkpoint_case(accepted);
    for (from, to, part) in [
        ("base = \"small\"", "base = \"large\"", "there is no base `large`; there are small"),
        ("METHOD-003", "META-006", "one of checkpoints"),
        ("checkpoint/area/slug", "judge/area/slug", "operation"),
        ("name = \"small\"", "name = \"small\"\nfrom = \"x\"", "there is no base `x`"),
        ("[[base]]\nname", "[[base]]\nname = \"small\"\n[[base]]\nname", "two of this name"),
        ("{0..1}", "{0..1", "without its"),
    ] {
        let complaint =
            match Corpus::from_toml("checkpoint/area.toml", &sound.replacen(from, to, 1)) {
                Err(error) => error.to_string(),
                Ok(corpus) => lint(&corpus, false).iter().map(ToString::to_string).collect(),
            };
        assert!(complaint.contains(part), "{to}: {complaint}");
    }
}
