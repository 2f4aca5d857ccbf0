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
