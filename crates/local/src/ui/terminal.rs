//! The terminal, taken and given back.
//!
//! In: a terminal. Out: frames on it. Must not: leave it raw, on the other screen or without its cursor, however this ends.

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::backend::CrosstermBackend;
use snafu::{ResultExt as _, Snafu};
use std::io::{self, IsTerminal as _, Stdout, stdout};

/// Why there is no screen.
#[derive(Debug, Snafu)]
pub enum Unusable {
    /// Output goes elsewhere.
    #[snafu(display("standard output is no terminal: start it in one, or write --headless"))]
    NoTerminal,
    /// The terminal refuses.
    #[snafu(display("the terminal cannot be used: {source}; write --headless"))]
    Refused {
        /// What it said.
        source: io::Error,
    },
}

/// A terminal that is ours until this is dropped.
pub struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Stdout>>,
}

impl Terminal {
    /// Takes it.
    pub fn take() -> Result<Self, Unusable> {
        snafu::ensure!(stdout().is_terminal(), NoTerminalSnafu);
        enable_raw_mode().context(RefusedSnafu)?;
        // From here on dropping gives it back.
        let inner = ratatui::Terminal::new(CrosstermBackend::new(stdout())).inspect_err(|_| give_back());
        let taken = Self { inner: inner.context(RefusedSnafu)? };
        execute!(stdout(), EnterAlternateScreen, Hide).context(RefusedSnafu)?;
        Ok(taken)
    }

    /// Draws the screen.
    pub fn show(&mut self, screen: &super::Screen) -> io::Result<()> {
        self.inner.draw(|frame| super::draw(frame, screen)).map(|_| ())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// A terminal that is gone needs nothing.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
