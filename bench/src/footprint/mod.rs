//! What the processes of a group use while nobody writes. In: programs, how long to look. Out: a table, and the page
//! `docs/performance-footprint.md`. Must not: count a time in which somebody was started anew, or overwrite an earlier page
//! with nothing.

mod page;
mod sample;
mod who;

use crate::play::{Played, Programs};
use anyhow::{Context as _, Result, bail};
use page::Page;
use sample::Sample;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Writes a second for each writer, while they write: the playground's own.
const RATE: u32 = 75;

/// So long they write before anything is read: a group that nobody ever wrote to is not what people have.
const WRITING: Duration = Duration::from_secs(10);

/// What the words ask for.
#[derive(Debug)]
pub(crate) struct Wanted {
    programs: Programs,
    page: Option<PathBuf>,
    trials: usize,
    /// How long each lasts.
    window: Duration,
    /// Between the last write and the first window: caches are written back, connections close, and statuses settle.
    settle: Duration,
}

pub(crate) fn understand(words: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted {
        programs: Programs::default(),
        page: None,
        trials: 3,
        window: Duration::from_mins(1),
        settle: Duration::from_secs(30),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        let seconds = |range| number(word, value, range).map(Duration::from_secs);
        match word.as_str() {
            "--page" => wanted.page = Some(value.into()),
            "--trials" => wanted.trials = usize::try_from(number(word, value, 1..=60)?)?,
            "--window" => wanted.window = seconds(5..=3600)?,
            "--settle" => wanted.settle = seconds(1..=3600)?,
            other if wanted.programs.take(other, value) => {}
            other => bail!("'{other}' is not known; write --trials, --window or --settle"),
        }
    }
    wanted.programs.check()?;
    Ok(wanted)
}

fn number(word: &str, value: &str, range: RangeInclusive<u64>) -> Result<u64> {
    let (least, most) = (*range.start(), *range.end());
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.with_context(|| format!("{word} {value}: write a whole number from {least} to {most}"))
}

/// The page is written after each window, so that a run that is cut short leaves what it has and says so. True: every window
/// that was asked for was measured, and the group was well.
pub(crate) fn measure(wanted: &Wanted) -> Result<bool> {
    let mut page = Page::new(wanted.page.clone(), wanted.window, wanted.settle, wanted.trials);
    let mut rests = 0;
    let outcome = wanted.programs.play("footprint", RATE, &script(wanted), |played, step| {
        rests += usize::from(step.starts_with("rest "));
        // The first rest is for the writers; the second one ends where the first window begins.
        if step.starts_with("rest ") && rests >= 2 { page.take(Sample::take(played)?, played) } else { Ok(()) }
    });
    if page.is_empty() {
        let played = outcome?;
        bail!("nothing was measured; {}", wrong(&played).unwrap_or_else(|| "no window was over".to_owned()));
    }
    let wrong = outcome.map_or_else(|error| Some(format!("{error:#}")), |played| wrong(&played));
    let whole = page.end(wrong.as_deref())?;
    println!("\n{}", page.text());
    Ok(whole)
}

/// What a run that came to its end did not do as it should.
fn wrong(played: &Played) -> Option<String> {
    let Some(verdict) = &played.verdict else { return Some("the playground ended without a verdict".to_owned()) };
    let failed = verdict["failed"].as_str().map(str::to_owned);
    failed.or_else(|| (verdict["passed"] != true).then(|| "the ledger owes something".to_owned()))
}

fn script(wanted: &Wanted) -> String {
    let rest = |time: Duration| format!("rest {}s\n", time.as_secs());
    let mut script = "story what processes use at rest\nsites iad,pdx,fra:dr-only\nwait settled\nload on\n".to_owned();
    script.push_str(&rest(WRITING));
    script.push_str("load off\nwait settled\n");
    script.push_str(&rest(wanted.settle));
    script.push_str(&rest(wanted.window).repeat(wanted.trials));
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(text: &str) -> Result<Wanted> {
        understand(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_understood_or_named_with_the_fix() {
        let wanted = words("--bloodraven b --keeper k --mysqld ld --mysqld m --window 90 --trials 2 --page p").unwrap();
        assert_eq!((wanted.window, wanted.settle), (Duration::from_secs(90), Duration::from_secs(30)));
        assert_eq!((wanted.trials, wanted.programs.mysqld.len()), (2, 2));
        let check = |text: &str, expect: &str| {
            let refused = words(text).unwrap_err().to_string();
            assert!(refused.contains(expect), "{text}: {refused}");
        };
        check("--bloodraven b", "--keeper is missing");
        check("--window", "--window needs a value");
        check("--window 4", "--window 4: write a whole number from 5 to 3600");
        check("--settle 1m", "--settle 1m: write a whole number from 1 to 3600");
        check("--trials 0", "--trials 0: write a whole number from 1 to 60");
        check("--only kill", "'--only' is not known; write --trials, --window or --settle");
    }

    #[test]
    fn nobody_writes_in_a_window() {
        let script = script(&words("--bloodraven b --keeper k --trials 2").unwrap());
        let steps: Vec<&str> = script.lines().skip(2).collect();
        let expect = "wait settled|load on|rest 10s|load off|wait settled|rest 30s|rest 60s|rest 60s";
        assert_eq!(steps, expect.split('|').collect::<Vec<_>>());
    }

    #[test]
    fn a_verdict_that_is_missing_or_bad_is_told() {
        let check = |verdict: Option<serde_json::Value>, expect: Option<&str>| {
            let played = Played { verdict, ..Played::default() };
            assert_eq!(wrong(&played).as_deref(), expect);
        };
        check(None, Some("the playground ended without a verdict"));
        check(Some(json!({"passed": true, "failed": null})), None);
        check(Some(json!({"passed": false, "failed": "line 7: ended by hand"})), Some("line 7: ended by hand"));
        check(Some(json!({"passed": false})), Some("the ledger owes something"));
    }
}
