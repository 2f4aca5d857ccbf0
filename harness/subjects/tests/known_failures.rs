//! The installed subjects against every case: what fails is listed in `expect.toml`, and what is
//! listed fails. Run it with `--ignored` once `gguf-assay subjects install` is done.

use std::path::Path;

use gguf_assay::process::Process;
use gguf_assay::{CaseFiles, Corpus, Options, Profile, run};
use gguf_assay_subjects::{Status, all, cache_dir};

#[test]
#[ignore = "needs the subjects installed"]
fn installed_subjects_fail_as_expected() {
    let cache = cache_dir().unwrap();
    let corpus = Corpus::embedded();
    let cases: Vec<_> = corpus.all().collect();
    let files = CaseFiles::new().unwrap();
    let mut complaints = Vec::new();
    let mut judged = 0;
    for subject in all() {
        match subject.status(&cache) {
            Status::Builtin => continue,
            Status::Installed => {}
            status => panic!("{} is {status:?} in {}", subject.name, cache.display()),
        }
        let program = subject.program(&cache, Path::new(""));
        let mut process = Process::start(program, subject.bounds()).unwrap();
        for profile in Profile::ALL {
            let options = Options {
                expectations: subject.expectations().unwrap(),
                unclear: subject.manifest.unclear.clone(),
                ..Options::new(profile)
            };
            let run = run(&mut process, &cases, &files, &options, |_| {});
            assert_eq!(Some(&run.about.version), subject.version().as_ref());
            judged += run.results.len();
            let failures = run.results.iter().filter(|result| result.verdict.is_failure());
            complaints.extend(failures.map(|result| {
                let outcome = result.outcome.map_or("not run", |outcome| outcome.name());
                let (name, case, detail) = (subject.name, &result.case, &result.detail);
                format!("{name}, {profile}: {case}: {}: {outcome}: {detail}", result.verdict)
            }));
        }
    }
    assert!(judged > 0, "nothing was judged");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
