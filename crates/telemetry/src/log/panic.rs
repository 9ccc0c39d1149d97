//! Panics, as log lines.
//!
//! In: a panic. Out: where it was, and its words as far as they are a literal. Must not: show a value; words that were made
//! at that moment may hold one.

use std::any::Any;
use std::panic::PanicHookInfo;

use super::line::TARGET;

/// Stands where words stood that may hold a value.
const UNSHOWN: &str = "its words may hold a value, and are not shown";

/// From here on each panic of this process is one line.
pub(super) fn log_from_here_on() {
    std::panic::set_hook(Box::new(|panic| {
        let (place, words) = described(panic);
        tracing::error!(target: TARGET, reason = place, error = words, "a task panicked");
    }));
}

fn described(panic: &PanicHookInfo<'_>) -> (String, &'static str) {
    let place = panic.location().map_or_else(|| "somewhere".to_owned(), |at| format!("{}:{}", at.file(), at.line()));
    (place, literal(panic.payload()))
}

/// A text of the program itself holds nothing that it was given.
fn literal(payload: &dyn Any) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or(UNSHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
    use std::sync::{Arc, Mutex};

    /// K-20: words of a panic.
    #[test]
    fn words_that_may_hold_a_value_are_not_shown() {
        type Act = fn(&str);
        let rows: [(&str, Act); 3] = [
            ("it cannot be", |_| panic!("it cannot be")),
            (UNSHOWN, |secret| panic!("a login with {secret}")),
            (UNSHOWN, |secret| std::panic::panic_any(secret.to_owned())),
        ];
        let (heard, me) = (Arc::new(Mutex::new(Vec::new())), std::thread::current().id());
        let (listens, before) = (Arc::clone(&heard), take_hook());
        set_hook(Box::new(move |panic| {
            if std::thread::current().id() == me {
                listens.lock().expect("whole").push(described(panic));
            } else {
                before(panic);
            }
        }));
        for (_, act) in rows {
            assert!(catch_unwind(AssertUnwindSafe(|| act("pw-1234"))).is_err());
        }
        drop(take_hook());
        let heard = heard.lock().expect("whole").clone();
        assert_eq!(heard.len(), rows.len());
        for ((words, _), (place, said)) in rows.iter().zip(heard) {
            assert_eq!(said, *words);
            assert!(place.contains("panic.rs:"), "{place}");
        }
    }
}
