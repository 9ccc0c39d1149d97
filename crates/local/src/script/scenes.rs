//! Scenes: several stories on one group, each from a known beginning, each with a verdict of its own.
//!
//! In: scenes and a stage. Out: how each ended. Must not: let one scene begin in what another left behind, or go on when
//! the promise itself is broken: what comes after would prove nothing.

use super::run::{Course, MISSED, Seen, attached, interrupted, looks, play, settled};
use super::{Act, Failed, Played, Scene, Stage, Step, What};
use std::time::Duration;
use tokio::time::Instant;

/// A copy of a site that has to be made anew, a failover and a failover back fit in several times.
const BEGIN: Duration = Duration::from_mins(4);

/// So long the group must be whole before a scene begins: what was just healed shows within two polls.
const CALM: Duration = Duration::from_millis(1200);

/// A remedy that was asked for is asked for again after this: it may have been refused.
const AGAIN: Duration = Duration::from_secs(8);

/// So often a scene is played whose ambush missed its moment: on a busy machine a phase can be over between two looks.
/// What such a scene is there for has not been seen, so it is played again and not let pass.
const ATTEMPTS: usize = 5;

/// Plays one scene after the other.
pub(super) async fn play_all(scenes: &[Scene], stage: &impl Stage) -> Vec<Played> {
    let mut played: Vec<Played> = Vec::new();
    let mut over: Option<String> = None;
    for scene in scenes {
        let mut ended = match &over {
            None => play_until_struck(scene, stage, &mut over).await,
            Some(why) => ending(scene, Some((&first_line(scene), why.clone())), Duration::ZERO),
        };
        stage.ends(&mut ended);
        if ended.failed.is_some() && over.is_none() && stage.audit().await.wrong_side > 0 {
            over = Some("not played: a write on the wrong side was found before".to_owned());
        }
        played.push(ended);
    }
    played
}

async fn play_until_struck(scene: &Scene, stage: &impl Stage, over: &mut Option<String>) -> Played {
    for _ in 1..ATTEMPTS {
        let played = play_one(scene, stage, over).await;
        if played.failed.as_ref().is_none_or(|failed| failed.because != MISSED) {
            return played;
        }
    }
    play_one(scene, stage, over).await
}

async fn play_one(scene: &Scene, stage: &impl Stage, over: &mut Option<String>) -> Played {
    stage.forget();
    if let Err(because) = begin(scene.from.as_deref(), stage).await {
        *over = Some(format!("not played: the group could not be made ready for the scene {}", scene.name));
        return ending(scene, Some((&first_line(scene), because)), Duration::ZERO);
    }
    stage.begins(scene);
    let start = Instant::now();
    let mut course = Course { moves: stage.seen().moves, ..Course::default() };
    let failed = play(&scene.steps, stage, &mut course).await.err();
    stage.forget();
    ending(scene, failed.as_ref().map(|failed| (&failed.step, failed.because.clone())), start.elapsed())
}

fn ending(scene: &Scene, failed: Option<(&Step, String)>, took: Duration) -> Played {
    let failed = failed.map(|(step, because)| Failed { step: step.clone(), because });
    Played { name: scene.name.clone(), story: scene.story.clone(), failed, took, gap: Duration::ZERO }
}

/// The line that a scene begins with, as a step that can fail.
fn first_line(scene: &Scene) -> Step {
    let from = scene.from.as_ref().map(|site| format!(" from {site}")).unwrap_or_default();
    Step { line: scene.line, text: format!("scene {}{from}", scene.name), at: None, what: What::WaitSettled(BEGIN) }
}

/// Heals everything, and waits until the group is whole and the right site writes; asks for what that takes. The load is
/// the last to begin: before that somebody may still be open by hand.
async fn begin(from: Option<&str>, stage: &impl Stage) -> Result<(), String> {
    stage.act(&Act::Heal).await?;
    become_ready(from, CALM, stage).await?;
    stage.load(true);
    become_ready(from, Duration::ZERO, stage).await
}

async fn become_ready(from: Option<&str>, lasting: Duration, stage: &impl Stage) -> Result<(), String> {
    let (start, mut calm, mut asked) = (Instant::now(), None::<Instant>, None::<Instant>);
    let mut looks = looks();
    loop {
        looks.tick().await;
        interrupted(stage)?;
        let seen = stage.seen();
        let Err(because) = ready(&seen, from) else {
            if calm.get_or_insert_with(Instant::now).elapsed() >= lasting {
                return Ok(());
            }
            continue;
        };
        calm = None;
        if start.elapsed() >= BEGIN {
            return Err(format!("the group is not ready after {} s: {because}", BEGIN.as_secs()));
        }
        if asked.is_none_or(|at| at.elapsed() >= AGAIN)
            && let Some(act) = remedy(&seen, from)
        {
            asked = Some(Instant::now());
            // What is about to be thrown away is looked at first: it stands in a report now.
            stage.audit().await;
            // One that is refused is asked for again, or not needed any more.
            let _ = stage.act(&act).await;
        }
    }
}

fn ready(seen: &Seen, from: Option<&str>) -> Result<(), String> {
    settled(seen)?;
    match (from, &seen.primary) {
        (Some(wanted), Some(primary)) if wanted != primary => Err(format!("{primary} writes, not {wanted}")),
        _ if !seen.serving => Err("nothing is written through the front door".to_owned()),
        _ => Ok(()),
    }
}

/// What brings the group nearer to where a scene begins; none: it has to find its own way.
fn remedy(seen: &Seen, from: Option<&str>) -> Option<Act> {
    let primary = seen.primary.as_deref()?;
    attached(seen).ok()?;
    let divergent = seen.sites.iter().find(|site| site.divergent > 0 && site.name != primary);
    if let Some(site) = divergent {
        // The surest way that there is: its data are thrown away, and it is copied anew.
        return Some(Act::LoseVolume(site.name.clone()));
    }
    from.filter(|wanted| *wanted != primary).map(|wanted| Act::Plan(wanted.to_owned(), None))
}
