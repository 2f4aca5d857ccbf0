//! Every method, and the judgement of every real checkpoint, against `golden/checkpoints`. After a
//! change that is meant, `INSTA_UPDATE=always cargo test -p gguf-assay-checkpoint --test golden`.

mod support;

use std::fmt::Write as _;
use std::path::Path;

use gguf_assay_checkpoint::method::Method;
use gguf_assay_checkpoint::{Checkpoint, Options, judge};

use support::Model;

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/checkpoints");
    settings.set_snapshot_path(golden);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn methods() {
    for method in Method::ALL {
        snapshot(&format!("method-{}", method.name), &method.to_text());
    }
}

#[test]
fn real_checkpoints() {
    for name in Model::names() {
        let checkpoint = Checkpoint::open(Model::of_data(&name).files()).unwrap();
        let judgement = judge(&checkpoint, &Options::default());
        let mut text = String::new();
        let method = judgement.method.map_or("none", |method| method.name);
        let _ = writeln!(text, "method {method}, {} plain modules", judgement.plain);
        for module in &judgement.modules {
            let number = |number: Option<u64>| number.map_or("?".into(), |n| n.to_string());
            let _ = writeln!(
                text,
                "{} [{}, {}] {} bits {} group {}",
                module.name,
                number(module.out_features),
                number(module.in_features),
                module.layout.name,
                module.bits,
                module.group
            );
        }
        for finding in &judgement.findings {
            let level = if finding.is_fault() { "fault" } else { "note" };
            let _ = writeln!(text, "{level} {finding}");
        }
        snapshot(&name, &text);
    }
}
