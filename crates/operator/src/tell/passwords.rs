//! New passwords, in words.
//!
//! In: notices about them. Out: lines, and an Event where somebody has to look. Must not: say anything of a password but whose
//! it is.

use super::told::Told;
use bloodraven_api::events::EventReason;
use bloodraven_brain::group::Notice;
use bloodraven_brain::group::accounts::{AGAINST_THE_RULES, AccountRole, NO_SUCH_ACCOUNT};
use bloodraven_telemetry::log::{Field, Level, Line};

/// What such a notice comes to; any other comes to nothing.
pub(super) fn told(notice: &Notice) -> Told {
    match notice {
        Notice::PasswordsSet { site, accounts } => {
            let message = format!("{site} has the new passwords of {}; its replicas get them from it", list(accounts));
            Told::new().line(Line::prose(Level::Info, message).text(Field::Site, site))
        }
        Notice::PasswordsDiscarded { site, accounts } => {
            let message = format!("the earlier passwords of {} are good for nothing any more", list(accounts));
            Told::new().line(Line::prose(Level::Info, message).text(Field::Site, site))
        }
        Notice::PasswordsNotSet { site, because } => {
            let message =
                format!("the passwords of the Secrets could not be set on {site}: {because}; it is tried again");
            Told::new().event(EventReason::CredentialReconcileFailed, message).also_as_prose()
        }
        Notice::PasswordsRefused { site, accounts } => {
            let each = accounts.iter().map(|(role, code)| format!("{role} ({})", why(*code)));
            let each = each.collect::<Vec<_>>().join(", ");
            let message = format!("{site} goes on refusing accounts with what their Secrets say: {each}");
            Told::new().event(EventReason::CredentialReconcileFailed, message).also_as_prose()
        }
        _ => Told::new(),
    }
}

fn list(accounts: &[AccountRole]) -> String {
    accounts.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}

fn why(code: u16) -> String {
    match code {
        NO_SUCH_ACCOUNT => {
            "there is no such user; servers make it at their next start, or put the name before back into the Secret"
                .to_owned()
        }
        AGAINST_THE_RULES => "the server's rules for passwords refuse it; choose another".to_owned(),
        1045 => "wrong password, or no such user".to_owned(),
        code => format!("error {code}; look at the account on that server"),
    }
}
