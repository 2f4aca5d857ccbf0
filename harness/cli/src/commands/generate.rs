//! `gguf-assay generate`: makes a file.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use gguf_assay_cases::BuiltFile;
use gguf_assay_format::{Profile, Rule, diagnose, lay_out};
use gguf_assay_smith::{Kind, Reach, Smith, plant};

/// Make a valid GGUF file from a seed, or one that breaks a rule
///
/// The same seed makes the same file. With --fault, the file breaks that rule and no other (but for
/// those that are broken wherever it is); `gguf-assay list rules` names them.
///
///     gguf-assay generate --seed 7 model.gguf                     a valid file
///     gguf-assay generate --seed 7 --fault META-006 broken.gguf   the same with a key twice
///     gguf-assay generate --kind huge --seed 3 large.gguf         gigabytes, nearly all a hole
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Where to write the file
    out: PathBuf,
    /// Which file
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What the file is like
    #[arg(long, value_enum, default_value_t = KindName::Any)]
    kind: KindName,
    /// By whose rules it is valid
    #[arg(long, value_enum, default_value_t = ReachName::Both)]
    reach: ReachName,
    /// The rule to break
    #[arg(long, value_name = "RULE")]
    fault: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindName {
    /// Any keys and tensors
    Any,
    /// A model of llama's architecture
    Llama,
    /// The same with experts
    Experts,
    /// A tokenizer without tensors
    Vocabulary,
    /// Tensors of gigabytes, as a sparse file
    Huge,
}

#[derive(Clone, Copy, ValueEnum)]
enum ReachName {
    /// The specification's
    Spec,
    /// ggml's
    Ggml,
    /// Both
    Both,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let kind = match args.kind {
        KindName::Any => Kind::Any,
        KindName::Llama => Kind::Llama,
        KindName::Experts => Kind::Experts,
        KindName::Vocabulary => Kind::Vocabulary,
        KindName::Huge => Kind::Huge,
    };
    let reach = match args.reach {
        ReachName::Spec => Reach::Spec,
        ReachName::Ggml => Reach::Ggml,
        ReachName::Both => Reach::Both,
    };
    let description = Smith { reach, kind }.forge_seed(args.seed);
    let (file, what) = match &args.fault {
        None => (lay_out(&description).segments, "valid".to_owned()),
        Some(id) => {
            let rule = Rule::find(id).with_context(|| {
                format!("there is no rule {id} of the container; see gguf-assay list rules")
            })?;
            let Some(planted) = plant(rule, &description, args.seed) else {
                bail!("{rule}: a file that breaks it has more than a gigabyte in memory");
            };
            let fault = match &planted.fault {
                Some(fault) => format!("{fault:?}"),
                None => "the file as a whole".to_owned(),
            };
            (planted.lay_out(), format!("breaks {rule}, {}: {fault}", rule.title))
        }
    };
    let file = BuiltFile(file);
    file.write_to(&args.out).with_context(|| format!("cannot write {}", args.out.display()))?;
    let mut text = format!("{}: {} bytes, {what}\n", args.out.display(), file.len());
    // A file in memory is read at once; one of gigabytes is for `check`.
    if file.len() < 1 << 28 {
        let bytes = file.to_bytes();
        let diagnosis = diagnose(&bytes);
        for profile in Profile::ALL {
            let verdict = if diagnosis.accepted_by(profile) { "accept" } else { "reject" };
            text.push_str(&format!("  {profile}: {verdict}\n"));
        }
    }
    super::print(&text)?;
    Ok(crate::SUCCESS)
}
