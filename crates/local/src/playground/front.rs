//! What a person sees: the screen, or JSON lines.
//!
//! In: the scene. Out: frames or lines, until the end; keys become deeds. Must not: hold the scene up: a slow terminal
//! only misses frames.

use super::picture::{Entry, Picture};
use super::scene::Scene;
use crate::ui::{Screen, Terminal, Wish, pressed};
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt as _;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

const FRAME: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

/// One line of the headless output.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Line<'a> {
    /// How things are, once a second.
    Picture(&'a Picture),
    /// Something happened.
    Event(&'a Entry),
    /// How a script ended.
    Verdict(&'a super::Verdict),
}

/// Prints a line. Whoever closed the other end has read enough.
pub(super) fn print(line: &Line<'_>) {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    let mut out = io::stdout().lock();
    let _ = out.write_all(&text).and_then(|()| out.flush());
}

/// JSON lines until the end.
pub(super) async fn headless(scene: Arc<Scene>) {
    let mut stop = scene.stop.subscribe();
    let mut every = interval(FRAME);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut next, mut last) = (0, None::<Instant>);
    loop {
        let ending = tokio::select! {
            _ = every.tick() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        next = print_entries(&scene, next);
        if last.is_none_or(|last| last.elapsed() >= SECOND) {
            last = Some(Instant::now());
            print(&Line::Picture(&scene.picture()));
        }
        if ending {
            return;
        }
    }
}

pub(super) fn print_entries(scene: &Scene, from: u64) -> u64 {
    let (entries, next) = scene.entries_from(from);
    for entry in &entries {
        print(&Line::Event(entry));
    }
    next
}

/// The screen until the end, or until the person wants it.
pub(super) async fn screen(scene: Arc<Scene>, mut terminal: Terminal, story: Option<String>) -> io::Result<()> {
    let mut stop = scene.stop.subscribe();
    let mut keys = EventStream::new();
    let mut every = interval(FRAME);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Answers to keys; more than a person can press in the meantime.
    let (answers, mut answered) = mpsc::channel(16);
    let mut screen = Screen { dir: scene.local.dir().display().to_string(), ..Screen::default() };
    let (mut next, mut last) = (0, None::<Instant>);
    loop {
        tokio::select! {
            _ = every.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
            Some(answer) = answered.recv() => screen.answer = answer,
            event = keys.next() => match event {
                Some(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                    screen.answer = None;
                    if let Some(wish) = pressed(&mut screen, key) {
                        fulfil(&scene, wish, answers.clone());
                    }
                }
                Some(Ok(_)) => {}
                // The terminal is gone.
                Some(Err(_)) | None => {
                    scene.end();
                    return Ok(());
                }
            },
        }
        let (entries, after) = scene.entries_from(next);
        next = after;
        for entry in entries {
            if let (Some(story), "step") = (&story, entry.reason.as_str()) {
                screen.script = Some((story.clone(), entry.message.clone()));
            }
            screen.note(entry);
        }
        let second_over = last.is_none_or(|last| last.elapsed() >= SECOND);
        if second_over {
            last = Some(Instant::now());
        }
        screen.take(scene.picture(), second_over);
        terminal.show(&screen)?;
    }
}

/// Does what a key asks for, beside the drawing.
fn fulfil(scene: &Arc<Scene>, wish: Wish, answers: mpsc::Sender<Option<String>>) {
    match wish {
        Wish::Quit => scene.end(),
        Wish::Load(on) => scene.load.switch(on),
        Wish::Act(act) => {
            let scene = Arc::clone(scene);
            // Ends with the deed, which has bounds of its own.
            tokio::spawn(async move {
                let answer = scene.act(&act).await.err().map(|why| format!("{act}: {why}"));
                // A screen that is gone needs no answer.
                let _ = answers.send(answer).await;
            });
        }
    }
}
