//! Keys into wishes.
//!
//! In: a key and the screen. Out: what the person wants. Must not: do it.

use super::Screen;
use crate::playground::picture::SitePicture;
use crate::script::{Act, End, Process};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To do something to the group.
    Act(Act),
    /// The load on or off.
    Load(bool),
    /// To end.
    Quit,
}

/// What the keys do, for the help page and the manual: key, what it does.
pub(super) const KEYS: [(&str, &str); 15] = [
    ("1-9, up, down", "choose a site"),
    ("k", "kill its mysqld (SIGKILL); it is started again"),
    ("K", "kill its mysqld and keep it away, or let it come back"),
    ("p", "pause its mysqld, or let it go on (SIGSTOP, SIGCONT)"),
    ("c", "cut it off from everyone, or let it back"),
    ("s", "kill its sidecar"),
    ("d", "kill keeper, server and sidecar at the same moment"),
    ("f", "plan a failover to it"),
    ("r", "reclone it from the primary"),
    ("o", "kill the operator and keep it away, or start it again"),
    ("x", "cut the operator off from the site, or mend that"),
    ("h", "heal everything"),
    ("l", "load on, off"),
    ("?", "this page"),
    ("q, ctrl-c", "end: nothing is left running"),
];

/// What a key asks for; none: nothing, or only another look of the screen.
pub fn pressed(screen: &mut Screen, key: KeyEvent) -> Option<Wish> {
    if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
        return Some(Wish::Quit);
    }
    let was_help = std::mem::take(&mut screen.help);
    let count = screen.picture.sites.len();
    let act = match key.code {
        KeyCode::Char('q') => return Some(Wish::Quit),
        KeyCode::Char('?') => {
            screen.help = !was_help;
            return None;
        }
        KeyCode::Char('l') => return Some(Wish::Load(!screen.picture.load.on)),
        KeyCode::Up => {
            screen.selected = screen.selected.saturating_sub(1);
            return None;
        }
        KeyCode::Down => {
            screen.selected = (screen.selected + 1).min(count.saturating_sub(1));
            return None;
        }
        KeyCode::Char(digit @ '1'..='9') => {
            let wanted = usize::try_from(u32::from(digit) - u32::from('1')).unwrap_or(0);
            screen.selected = if wanted < count { wanted } else { screen.selected };
            return None;
        }
        KeyCode::Char('h') => Act::Heal,
        KeyCode::Char('o') => {
            let runs = screen.picture.operators.first().is_some_and(|operator| operator.pid.is_some());
            if runs { Act::Hold(Process::Operator(0)) } else { Act::Release(Process::Operator(0)) }
        }
        KeyCode::Char(letter) => about_site(letter, screen.picture.sites.get(screen.selected)?)?,
        _ => return None,
    };
    Some(Wish::Act(act))
}

fn about_site(letter: char, site: &SitePicture) -> Option<Act> {
    let name = || site.name.clone();
    let hurt = |how: &str| site.hurt.iter().any(|hurt| hurt == how);
    let end = || End::Site(name());
    Some(match letter {
        'K' if hurt("held") => Act::Release(Process::Mysqld(name())),
        'K' => Act::Hold(Process::Mysqld(name())),
        'k' => Act::Kill(Process::Mysqld(name())),
        'p' if hurt("paused") => Act::Resume(Process::Mysqld(name())),
        'p' => Act::Pause(Process::Mysqld(name())),
        'c' if hurt("isolated") => Act::Rejoin(end()),
        'c' => Act::Isolate(end()),
        's' => Act::Kill(Process::Sidecar(name())),
        'd' => Act::KillPod(name()),
        'f' => Act::Plan(name(), None),
        'r' => Act::Reclone(name()),
        'x' if hurt("cut from operator-0") => Act::Mend(End::Operator(0), end()),
        'x' => Act::Cut(End::Operator(0), end()),
        _ => return None,
    })
}
