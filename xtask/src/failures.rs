//! Which tests failed, and what they said: kept while thousands of lines pass, shown once more at the end.
//!
//! In: the lines of a test runner, in their order. Out: a few lines for each test that failed. Must not: grow with the
//! output; of a long story the end is kept, which is where the complaint is.

use std::collections::VecDeque;

/// How many lines of one test are kept.
const LINES: usize = 40;

/// How many tests are shown; more than that is one defect with many faces.
const TESTS: usize = 30;

/// What was heard so far.
#[derive(Default)]
pub(crate) struct Failures {
    stories: Vec<Story>,
    telling: bool,
}

struct Story {
    test: String,
    lines: VecDeque<String>,
}

impl Failures {
    /// Takes the next line: `---- name stdout ----` begins a story, the next one or `failures:` ends it.
    pub(crate) fn hear(&mut self, line: &str) {
        if let Some(test) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----")) {
            let test = test.strip_suffix(" stdout").unwrap_or(test).to_owned();
            self.telling = self.stories.len() < TESTS;
            if self.telling {
                self.stories.push(Story { test, lines: VecDeque::new() });
            }
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.telling = false;
        } else if self.telling
            && let Some(story) = self.stories.last_mut()
        {
            if story.lines.len() == LINES {
                story.lines.pop_front();
            }
            story.lines.push_back(line.to_owned());
        }
    }

    /// What another runner said, too.
    pub(crate) fn add(&mut self, other: Self) {
        self.stories.extend(other.stories);
        self.stories.truncate(TESTS);
        self.telling = false;
    }

    /// For people.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.stories.iter().flat_map(|story| {
            let head = format!("\nFAILED TEST {}", story.test);
            let told = story.lines.iter().filter(|line| !line.is_empty()).map(|line| format!("    {line}"));
            std::iter::once(head).chain(told)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Failures, LINES};

    const OUTPUT: &str = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\npanicked at x\nwhy\n\n---- b stdout ----\nother\n\n\nfailures:\n    a\n    b\n\ntest result: FAILED.";

    fn heard(output: &str) -> Vec<String> {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.hear(line));
        failures.lines().collect()
    }

    #[test]
    fn each_failed_test_is_told_with_its_own_words() {
        let expected = ["\nFAILED TEST a", "    panicked at x", "    why", "\nFAILED TEST b", "    other"];
        assert_eq!(heard(OUTPUT), expected);
    }

    #[test]
    fn the_end_of_a_long_story_is_kept() {
        let story: Vec<String> = (0..LINES + 5).map(|number| format!("line {number}")).collect();
        let lines = heard(&format!("---- a stdout ----\n{}\nfailures:\n", story.join("\n")));
        assert_eq!(lines.len(), LINES + 1);
        assert_eq!(lines.last().map(String::as_str), Some(format!("    line {}", LINES + 4).as_str()));
    }
}
