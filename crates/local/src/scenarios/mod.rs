//! The scenarios that are shipped: numbered, each a script, and the tour.
//!
//! In: a number or a name. Out: a script's text. Must not: hold anything but what `bloodraven playground --list` tells and
//! the manual lists.

/// A shipped scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// For `--scenario N`; the tour has none.
    pub number: Option<u8>,
    /// For `--scenario NAME`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl Scenario {
    /// What it shows, in one line.
    pub fn story(&self) -> &'static str {
        self.text.lines().find_map(|line| line.strip_prefix("story ")).unwrap_or_default()
    }
}

macro_rules! shipped {
    ($($number:expr, $name:literal;)*) => {
        &[$(Scenario { number: $number, name: $name, text: include_str!(concat!($name, ".scn")) }),*]
    };
}

/// All of them.
pub const ALL: &[Scenario] = shipped! {
    Some(1), "primary-killed";
    Some(2), "operator-restarted";
    Some(3), "primary-isolated";
    Some(4), "planned-under-load";
    Some(5), "operator-dies-in-the-move";
    Some(6), "primary-paused";
    Some(7), "operator-cut-from-primary";
    Some(8), "replicas-die";
    Some(9), "pod-killed";
    Some(10), "hold-then-heal";
    Some(11), "two-operators";
    Some(12), "operator-dies-in-a-planned-move";
    Some(13), "wiped-replica";
    None, "tour";
};

/// The scenario of that number or name.
pub fn find(word: &str) -> Option<&'static Scenario> {
    let number = word.parse::<u8>().ok();
    ALL.iter().find(|scenario| scenario.name == word || (number.is_some() && scenario.number == number))
}

/// All of them, a line each.
pub fn list() -> String {
    let line = |scenario: &Scenario| {
        let number = scenario.number.map(|number| number.to_string()).unwrap_or_default();
        format!("{number:>4}  {:<32}  {}\n", scenario.name, scenario.story())
    };
    ALL.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;

    #[test]
    fn every_shipped_scenario_is_a_script_with_a_story_and_a_judged_ledger() {
        let sites = script::sites("iad,pdx,fra").unwrap();
        for scenario in ALL {
            let script =
                script::parse(scenario.text, &sites).unwrap_or_else(|wrong| panic!("{}: {wrong}", scenario.name));
            assert!(!script.story.is_empty(), "{}", scenario.name);
            let judged =
                |step: &script::Step| matches!(step.what, script::What::Expect(script::Expect::LedgerClean, _));
            assert!(script.steps.iter().any(judged), "{}", scenario.name);
        }
    }

    #[test]
    fn numbers_and_names_are_found_and_listed_once() {
        assert_eq!(find("2").map(|found| found.name), Some("operator-restarted"));
        assert_eq!(find("5").map(|found| found.name), Some("operator-dies-in-the-move"));
        assert_eq!(find("tour").map(|found| found.number), Some(None));
        assert_eq!(find("99"), None);
        let manual = include_str!("../../../../docs/playground.md");
        for line in list().lines() {
            let name = line.split_whitespace().find(|word| word.contains('-') || *word == "tour").unwrap();
            assert!(manual.contains(&format!("`{name}`")), "the manual does not list {name}");
        }
        let mut names: Vec<&str> = ALL.iter().map(|scenario| scenario.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
