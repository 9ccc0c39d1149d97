//! Every scenario of the corpus is played: no promise is broken, and what it expects comes true.

use bloodraven_sim::simulate::{Rest, play, report, text};
use std::path::Path;

#[test]
fn every_scenario_of_the_corpus_keeps_its_promises() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files: Vec<_> =
        folder.read_dir().expect("the corpus is there").map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() > 10, "the corpus is not empty");
    let mut wrong = Vec::new();
    for file in files {
        let scenario = text::parse(&std::fs::read_to_string(&file).expect("it is text"))
            .unwrap_or_else(|wrong| panic!("{}: {wrong}", file.display()));
        assert!(!scenario.story.is_empty(), "{}: a story in one line", file.display());
        assert_eq!(text::parse(&text::print_scenario(&scenario)), Ok(scenario.clone()), "{}", file.display());
        let run = play(&scenario, false);
        if run.broken.is_some() || !matches!(run.rest, Rest::Serves | Rest::Blocked(..)) {
            wrong.push(format!("{}: {}", file.display(), report::verdict(&run)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
