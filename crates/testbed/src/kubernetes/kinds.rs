//! Waiting until custom kinds are served.
//!
//! In: a way to call kubectl. Out: its last word if they are not served in time. Must not: take the first no for an answer:
//! `kubectl wait` gives up at once on a definition whose status nobody has written yet.

use std::time::Duration;

use crate::wait;

/// One call waits for so long; then it is asked again.
const ONE_CALL: &str = "--timeout=10s";

/// Waits until the definitions that `which` names (`["crd", "--all"]`) are established.
pub fn established<E>(
    limit: Duration,
    which: &[&str],
    mut kubectl: impl FnMut(&[&str]) -> Result<(), E>,
) -> Result<(), E> {
    let words = [&["wait", "--for=condition=Established", ONE_CALL], which].concat();
    let mut refused = None;
    let answered = wait::until_every(limit, Duration::from_millis(200), || match kubectl(&words) {
        Ok(()) => Some(()),
        Err(error) => {
            refused = Some(error);
            None
        }
    });
    match (answered, refused) {
        (None, Some(error)) => Err(error),
        (Some(()), _) | (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_no_is_not_the_last_word_and_the_last_one_is_told() {
        let mut answers = vec![Ok(()), Err("no status yet")];
        let mut asked = Vec::new();
        let ended = established(Duration::from_secs(10), &["crd", "--all"], |words| {
            asked.push(words.join(" "));
            answers.pop().unwrap_or(Ok(()))
        });
        assert_eq!((ended, asked.len()), (Ok(()), 2));
        assert_eq!(asked[0], "wait --for=condition=Established --timeout=10s crd --all");
        assert_eq!(established(Duration::ZERO, &["crd"], |_| Err("never")), Err("never"));
    }
}
