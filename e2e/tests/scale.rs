//! The harness of `cargo xtask bench scale` in small: a real operator, a real API server, two groups of played sites.
//!
//! What is counted is asserted, and nothing that is timed: how fast it was is that benchmark's business.

use std::process::Command;
use std::time::Duration;

use bloodraven_e2e::programs;
use bloodraven_testbed::process;

/// A minute on two cores that nobody else uses. It ends by itself: a run that is over and does not end is a fault, too.
const LIMIT: Duration = Duration::from_mins(3);

/// The cells of the rows of the table below that heading, without its head.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let part = page.split("## ").find(|part| part.starts_with(heading)).unwrap_or_default();
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows = part.lines().filter(|line| line.starts_with('|')).map(cells);
    rows.skip(2).collect()
}

#[test]
fn two_groups_are_led_polled_and_moved() {
    let mut command = Command::new(programs::scale());
    command.arg("--bloodraven").arg(programs::bloodraven()).args(["--groups", "2", "--window", "6"]);
    let run = process::output(&mut command, "", LIMIT).unwrap();
    let (page, told) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{}\n{told}\n{page}", run.status);
    assert!(told.contains("2 of 2 groups are ready"), "{told}");

    let count = |cell: &String| cell.parse::<usize>().unwrap_or_else(|_| panic!("{cell:?} is no number in\n{page}"));
    let steady: Vec<(usize, usize)> =
        rows(&page, "Steady state").iter().map(|row| (count(&row[0]), count(&row[5]))).collect();
    let sizes: Vec<usize> = steady.iter().map(|(groups, _)| *groups).collect();
    assert_eq!(sizes, [2], "{page}");
    for (groups, polls) in steady {
        // Three sites, each at least twice: there is room for three polls of it.
        assert!(polls >= groups * 6, "{polls} polls of {groups} groups\n{page}");
    }
    let lost: Vec<usize> = rows(&page, "Primaries lost").iter().map(|row| count(&row[1])).collect();
    assert_eq!(
        lost,
        [2, 2],
        "both records were taken away from who was lost, and both groups written to elsewhere\n{page}"
    );
    let hung = page.split("Polls of all other groups: ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    assert!(count(&hung.to_owned()) > 0, "the other group is polled while a site hangs\n{page}");
    assert!(!page.contains("cut short") && !page.contains("does not know"), "{page}");
}
