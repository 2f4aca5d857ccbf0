//! `gguf-assay fuzz`: files that nobody thought of, for any reader.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use arbitrary::Unstructured;
use gguf_assay::process::Process;
use gguf_assay::{CaseFiles, CaseResult, Channel, Options, Outcome, Profile, Verdict};
use gguf_assay_cases::{AnyCase, BuiltFile, NewCase, Verdict as Wanted};
use gguf_assay_format::{
    Description, Fault, Rule, Segments, Violation, diagnose, lay_out, printable, rule,
};
use gguf_assay_oracle::Mode;
use gguf_assay_smith::{Kind, Reach, Smith, plant, shrink, small_rules};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::run::{Reader, reader, seconds_of};

/// Give a reader generated files, and write down where it is wrong
///
/// Three kinds of files in turn: valid ones, ones with one planted fault, ones with one field
/// changed at random. What the reader has to do with a file is what the reference says; where ggml
/// itself does not agree, the file is passed over, and where the text and ggml differ, a reader may
/// do either, but not crash, hang or return another value. What is found is shrunk to a file that still shows it, told apart by
/// rule and by what the reader did, and written as a case that a corpus can take in, with its bytes.
/// The same seed finds the same.
///
///     gguf-assay fuzz candle --count 20000
///     gguf-assay fuzz --adapter 'python3 my_adapter.py' --time 60 --rule META-011
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The name of a subject
    #[arg(required_unless_present = "adapter")]
    subject: Option<String>,
    /// A program that speaks the adapter protocol (harness/suite/PROTOCOL.md), instead of a subject
    #[arg(long, value_name = "CMD", conflicts_with = "subject")]
    adapter: Option<String>,
    /// Whose rules count
    #[arg(long, default_value = "ggml")]
    profile: Profile,
    /// The first file
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many files
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Stop after so many seconds, whatever the count
    #[arg(long, value_name = "SECONDS")]
    time: Option<f32>,
    /// Only faults of these rules, and no other files
    #[arg(long, value_name = "RULE")]
    rule: Vec<String>,
    /// Where to write what is found
    #[arg(long, value_name = "DIR", default_value = "fuzz-findings")]
    out: PathBuf,
    /// Seconds for one answer, instead of the subject's own limit
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f32>,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let rules = rules(&args.rule)?;
    let Reader { name, program, mut bounds, unclear } =
        reader(args.subject.as_deref(), args.adapter.as_deref())?;
    if let Some(seconds) = args.timeout {
        bounds.time = seconds_of(seconds)?;
    }
    let time = args.time.map(seconds_of).transpose()?;
    let mut process = Process::start(program, bounds).map_err(anyhow::Error::msg)?;
    let mut hunt = Hunt {
        options: Options { unclear, ..Options::new(args.profile) },
        channel: &mut process,
        seen: BTreeMap::new(),
        found: BTreeMap::new(),
    };

    let bar = ProgressBar::new(args.count);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {pos}/{len} files, {per_sec}, {eta} left, {msg}")
    {
        bar.set_style(style);
    }
    let start = Instant::now();
    let (mut tried, mut failures) = (0, 0u64);
    for seed in (args.seed..).take(args.count.try_into().unwrap_or(usize::MAX)) {
        if time.is_some_and(|time| start.elapsed() >= time) {
            break;
        }
        let input = input(seed, args.profile, &rules, !args.rule.is_empty());
        failures += u64::from(hunt.try_input(&input, seed)?);
        tried += 1;
        bar.set_message(format!("{} findings", hunt.found.len()));
        bar.inc(1);
    }
    bar.finish_and_clear();

    let mut text = format!(
        "{name}: {tried} files from seed {} on, {failures} not as they ought to be, {} findings\n",
        args.seed,
        hunt.found.len(),
    );
    if !hunt.found.is_empty() {
        std::fs::create_dir_all(&args.out)
            .with_context(|| format!("cannot make the folder {}", args.out.display()))?;
    }
    for (index, (key, finding)) in hunt.found.iter().enumerate() {
        let is_valid = key.rule == VALID;
        let rule = if is_valid { VALID } else { finding.rule.id };
        let slug = format!("{}-{}-{index}", key.outcome, rule.to_lowercase());
        finding.write(&args.out, &slug, &name, args.profile, is_valid)?;
        text.push_str(&format!(
            "\n{} ({}), {} times: {}\n  {} bytes: {}\n",
            key.outcome,
            rule,
            finding.times,
            printable(&finding.result.detail, 300),
            finding.file.len(),
            args.out.join(format!("{slug}.toml")).display(),
        ));
    }
    super::print(&text)?;
    Ok(if hunt.found.is_empty() { crate::SUCCESS } else { crate::FINDINGS })
}

/// The rules whose faults are planted.
fn rules(ids: &[String]) -> Result<Vec<&'static Rule>> {
    if ids.is_empty() {
        return Ok(small_rules().collect());
    }
    let find = |id: &String| {
        Rule::find(id).with_context(|| format!("there is no rule {id}; see gguf-assay list rules"))
    };
    ids.iter().map(find).collect()
}

/// A file to try, as a case describes one.
#[derive(Clone)]
struct Input {
    description: Description,
    fault: Option<Fault>,
}

impl Input {
    fn lay_out(&self) -> Option<Segments> {
        match &self.fault {
            Some(fault) => fault.lay_out(&self.description).ok(),
            None => Some(lay_out(&self.description).segments),
        }
    }
}

/// The file of a seed.
fn input(seed: u64, profile: Profile, rules: &[&'static Rule], only_faults: bool) -> Input {
    let reach = match (seed / 3 % 4, profile) {
        (0, Profile::Spec) => Reach::Spec,
        (0, Profile::Ggml) => Reach::Ggml,
        _ => Reach::Both,
    };
    let kind = match seed / 12 % 6 {
        0 => Kind::Llama,
        1 => Kind::Vocabulary,
        _ => Kind::Any,
    };
    let description = Smith { reach, kind }.forge_seed(seed);
    let valid = |description| Input { description, fault: None };
    match seed % 3 {
        0 if !only_faults => valid(description),
        1 if !only_faults => match change(&description, seed) {
            Some(fault) => Input { description, fault: Some(fault) },
            None => valid(description),
        },
        _ => {
            let rule = rules[(seed / 3 % rules.len() as u64) as usize];
            match plant(rule, &description, seed) {
                Some(planted) => Input { description: planted.description, fault: planted.fault },
                None => valid(description),
            }
        }
    }
}

/// One field changed at random: its bytes, its length, what stands before it, or that it is there.
fn change(description: &Description, seed: u64) -> Option<Fault> {
    let layout = lay_out(description);
    let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    let more = seed.wrapping_mul(0xD134_2543_DE82_EF95).to_le_bytes();
    let bytes = [random, more].concat();
    let mut bytes = Unstructured::new(&bytes);
    let fields: Vec<_> =
        layout.fields.iter().filter(|field| field.range.end - field.range.start <= 64).collect();
    let field = bytes.choose(&fields).ok()?;
    let at = field.path.clone();
    let width = (field.range.end - field.range.start) as usize;
    Some(match bytes.int_in_range(0..=9).ok()? {
        0 => Fault::Cut { at, plus: 0 },
        1 => Fault::Insert { at, bytes: bytes.bytes(1).ok()?.to_vec() },
        2 => Fault::Replace { at, bytes: vec![] },
        3 => Fault::Replace { at, bytes: vec![0xFF; width] },
        4 => Fault::Replace { at, bytes: vec![0; width] },
        _ => {
            let mut changed = layout.segments.slice(field.range.start, field.range.end);
            let place = bytes.choose_index(changed.len()).ok()?;
            changed[place] ^= 1 << bytes.int_in_range(0..=7).ok()?;
            Fault::Replace { at, bytes: changed }
        }
    })
}

/// What findings are told apart by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    outcome: Outcome,
    /// The rule that the file breaks, or [`VALID`]; nothing where the reader says where it broke.
    rule: &'static str,
    /// What the reader says, without what is different in each file.
    says: String,
}

/// In the place of a rule: the file is one to read.
const VALID: &str = "valid";

impl Key {
    /// Whether a smaller file shows the same fault of the reader as the one that was found.
    fn is_shown_by(&self, smaller: &Key) -> bool {
        // A generated file may break many rules. Where a reader breaks down, or says no more than
        // that it cannot go on, this tells more of its fault than which of them comes first.
        let rule = match self.outcome {
            Outcome::Accepted | Outcome::Rejected | Outcome::AcceptedWrongValue => {
                self.rule == smaller.rule
            }
            _ => self.rule != VALID || smaller.rule == VALID,
        };
        rule && (self.outcome, &self.says) == (smaller.outcome, &smaller.says)
    }
}

/// A file on which the reader is wrong.
struct Finding {
    seed: u64,
    input: Input,
    file: BuiltFile,
    result: CaseResult,
    rule: &'static Rule,
    times: u64,
}

struct Hunt<'a> {
    options: Options,
    channel: &'a mut dyn Channel,
    /// Under which key a file of this key was found, once it was shrunk.
    seen: BTreeMap<Key, Key>,
    found: BTreeMap<Key, Finding>,
}

impl Hunt<'_> {
    /// Tries a file; whether the reader is wrong.
    fn try_input(&mut self, input: &Input, seed: u64) -> Result<bool> {
        let Some((key, rule, result)) = self.judge(input)? else { return Ok(false) };
        if let Some(finding) = self.seen.get(&key).and_then(|key| self.found.get_mut(key)) {
            finding.times += 1;
            return Ok(true);
        }
        // Where each attempt takes the time limit, few are made.
        let mut left = if key.outcome == Outcome::TimedOut { 24 } else { 3000 };
        let (description, fault) = shrink::shrink(
            &input.description,
            input.fault.as_ref(),
            |description, fault| {
                left -= 1;
                let attempt = Input { description: description.clone(), fault: fault.cloned() };
                left > 0
                    && matches!(self.judge(&attempt), Ok(Some((smaller, ..))) if key.is_shown_by(&smaller))
            },
        );
        let input = Input { description, fault };
        let (found, rule, result) = match self.judge(&input)? {
            Some((found, rule, result)) if key.is_shown_by(&found) => (found, rule, result),
            // A reader that does not do the same twice.
            _ => (key.clone(), rule, result),
        };
        let file = BuiltFile(input.lay_out().context("a file that was laid out before")?);
        self.seen.insert(key, found.clone());
        let finding = Finding { seed, input, file, result, rule, times: 1 };
        match self.found.entry(found) {
            Entry::Vacant(entry) => drop(entry.insert(finding)),
            Entry::Occupied(mut entry) => {
                let times = entry.get().times + 1;
                if finding.file.len() < entry.get().file.len() {
                    entry.insert(finding);
                }
                entry.get_mut().times = times;
            }
        }
        Ok(true)
    }

    /// What the reader did, if it is wrong.
    fn judge(&mut self, input: &Input) -> Result<Option<(Key, &'static Rule, CaseResult)>> {
        let Some(file) = input.lay_out() else { return Ok(None) };
        let bytes = file.to_bytes();
        let Some((rule, verdicts)) = verdicts(&bytes) else { return Ok(None) };
        let case = input.case("read/fuzz/file", "a generated file", rule, verdicts);
        // What the case format has no words for is no case.
        let Ok(case) = case.to_case() else { return Ok(None) };
        let files = CaseFiles::new().context("cannot make a folder for files")?;
        let cases = [AnyCase::Read(&case)];
        let run = gguf_assay::run(self.channel, &cases, &files, &self.options, |_| ());
        let Some(result) = run.results.into_iter().next() else { return Ok(None) };
        let Some(outcome) = result.outcome.filter(|_| result.verdict == Verdict::Fail) else {
            return Ok(None);
        };
        // Whatever a file that has to be read has notes on, that is not what is wrong.
        let (outcome, key_rule) = match (case.verdict(self.options.profile), outcome) {
            (Wanted::Accept, _) => (outcome, VALID),
            // A reader that may accept the file has to read it right.
            (Wanted::Either(_), Outcome::AcceptedWrongValue) => (outcome, VALID),
            // Of a file to be refused, there is no right value.
            (Wanted::Reject, Outcome::AcceptedWrongValue) => (Outcome::Accepted, rule.id),
            (_, Outcome::Panicked) => (outcome, ""),
            _ => (outcome, rule.id),
        };
        let says = match outcome {
            Outcome::Accepted | Outcome::TimedOut | Outcome::OutOfMemory => String::new(),
            Outcome::AcceptedWrongValue => difference(&result.detail),
            // Where it was: the words after it differ from file to file.
            Outcome::Panicked => result.detail.split(": ").take(1).collect(),
            _ => without_particulars(&result.detail),
        };
        Ok(Some((Key { outcome, rule: key_rule, says }, rule, result)))
    }
}

/// What each profile asks of a reader, and the rule that it is about; `None` if ggml itself says
/// otherwise, so that nothing is certain.
fn verdicts(bytes: &[u8]) -> Option<(&'static Rule, [Wanted; 2])> {
    let diagnosis = diagnose(bytes);
    let ggml = gguf_assay_oracle::File::from_bytes_guarded(bytes, Mode::Header).ok()?;
    let ggml = ggml.is_ok_and(|file| file.has_data_within(bytes.len() as u64));
    if ggml != diagnosis.accepted_by(Profile::Ggml) {
        return None;
    }
    let binding = |profiles: &[Profile]| {
        let binds =
            |violation: &&Violation| profiles.iter().all(|&profile| violation.binds(profile));
        diagnosis.violations.iter().find(binds)
    };
    let both = binding(&Profile::ALL);
    // Where the text forbids one thing and ggml another, no rule is beyond dispute.
    let disputed = binding(&[Profile::Ggml]).or(binding(&[Profile::Spec]));
    let verdict = match (both, disputed) {
        (Some(_), _) => Wanted::Reject,
        (None, Some(violation)) => {
            Wanted::Either(format!("the text and ggml differ on {}", violation.rule()))
        }
        (None, None) => Wanted::Accept,
    };
    // A file without a flaw is about being read at all.
    let noted = both.or(disputed).or(diagnosis.violations.first());
    let rule = noted.map_or(&rule::HDR_001, |violation| violation.rule());
    Some((rule, [verdict.clone(), verdict]))
}

impl Input {
    /// The file as a case.
    fn case<'a>(
        &'a self,
        id: &'a str,
        summary: &'a str,
        rule: &'static Rule,
        verdicts: [Wanted; 2],
    ) -> NewCase<'a> {
        // What a reader finds in bytes that were changed does not follow from the description.
        let any = self.fault.as_ref().is_some_and(|fault| !fault.is_described());
        NewCase {
            id,
            rule,
            summary,
            source: "gguf-assay fuzz",
            description: &self.description,
            fault: self.fault.as_ref(),
            verdicts,
            any_value: any.then_some("bytes of the file were changed"),
        }
    }
}

impl Finding {
    /// Writes the case and its file.
    fn write(
        &self,
        dir: &Path,
        slug: &str,
        reader: &str,
        profile: Profile,
        is_valid: bool,
    ) -> Result<()> {
        let (_, verdicts) = verdicts(&self.file.to_bytes()).context("a file that was judged")?;
        let id = format!("read/fuzz/{slug}");
        let outcome = self.result.outcome.map_or("", Outcome::name);
        let summary = if is_valid {
            format!("a file to read, {outcome} by {reader}")
        } else {
            format!("not so: {}; {outcome} by {reader}", self.rule.title)
        };
        let case = self.input.case(&id, &summary, self.rule, verdicts);
        let mut text = format!("# {reader}, profile {profile}, seed {}: {outcome}\n", self.seed);
        for line in printable(&self.result.detail, 600).lines() {
            text.push_str(&format!("# {line}\n"));
        }
        text.push_str(&format!(
            "# again: gguf-assay run {reader} --profile {profile} --cases DIR --filter '{id}'\n\n"
        ));
        text.push_str(&case.to_toml()?);
        let path = dir.join(format!("{slug}.toml"));
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        let path = dir.join(format!("{slug}.gguf"));
        self.file.write_to(&path).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A message without numbers, quotations and what is in brackets, which differ from file to file.
fn without_particulars(message: &str) -> String {
    let mut out = String::new();
    let mut close = None;
    for c in message.chars().take(200) {
        match (close, c) {
            (Some(end), c) if c == end => close = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => close = Some(c),
            (None, '(') => close = Some(')'),
            (None, '[') => close = Some(']'),
            (None, '0'..='9') => {}
            (None, c) => out.push(c),
        }
    }
    // The start says what; the end of a long message says where.
    out.truncate(out.char_indices().nth(60).map_or(out.len(), |(at, _)| at));
    out
}

/// What differs from what was expected, and how, without the names: a value of a type, a key or a
/// tensor that is missing.
fn difference(detail: &str) -> String {
    let (what, rest) = detail.split_once('"').unwrap_or((detail, ""));
    // A name may have any character in it, so that only its end is certain.
    if let Some((_, how)) = rest.rsplit_once("\" is there ") {
        let how = how.chars().take_while(|c| *c != ';').filter(|c| !c.is_ascii_digit());
        return format!("{what}is there {}", how.collect::<String>());
    }
    let value = rest.split_once("\" is {").map_or("", |(_, value)| value);
    let mut words = value.split('"').skip(1).step_by(2);
    match (words.next(), words.nth(1)) {
        (Some("array"), Some(element_type)) => format!("{what}array of {element_type}"),
        (Some(value_type), _) => format!("{what}{value_type}"),
        (None, _) => what.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_by_their_words() {
        let shape = |shape: &str| format!("cannot reshape array of size 0 into shape {shape}");
        assert_eq!(without_particulars(&shape("(3,1,144)")), without_particulars(&shape("()")));
        assert_eq!(without_particulars("tensor \"a\" of type 42"), "tensor  of type ");
    }

    #[test]
    fn differences_are_told_apart_by_their_kind() {
        for (detail, kind) in [
            (r#"the value of "k" is {"string":{"hex":"ff"}}, the reader"#, "the value of string"),
            (
                r#"the value of "k" is {"array":{"type":"u8","values":["1"]}}, the reader"#,
                "the value of array of u8",
            ),
            (
                r#"the key "a" is there "b" is there 2 times, the reader has it once; expected"#,
                "the key is there  times, the reader has it once",
            ),
            ("version is 3, the reader says 77", "version is 3, the reader says 77"),
        ] {
            assert_eq!(difference(detail), kind);
        }
    }
}
