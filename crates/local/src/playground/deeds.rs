//! Deeds: what is done to processes and links.
//!
//! In: an [`Act`]. Out: it is done, and remembered as long as it holds. Must not: do anything that a power cut, a kill or
//! a cable could not.

use super::person;
use super::scene::Scene;
use crate::network;
use crate::script::{Act, Deed, End, Process};
use crate::supervisor::{Part, Wipe};
use crate::weather::Who;

/// What holds until it is undone.
const PAUSED: &str = "paused";
const SIDECAR_PAUSED: &str = "sidecar paused";
const HELD: &str = "held";
const SIDECAR_HELD: &str = "sidecar held";
const STOPPED: &str = "stopped";
const ISOLATED: &str = "isolated";
/// What is received is applied later, or not at all.
pub(super) const APPLIER: &str = "applier held up";

pub(super) async fn perform(scene: &Scene, act: &Act) -> Result<(), String> {
    match act {
        Act::Kill(process) => kill(scene, process).await,
        Act::Hold(process) => hold(scene, process).await,
        Act::Release(process) => release(scene, process).await,
        Act::Pause(process) => pause(scene, process).await,
        Act::Resume(process) => resume(scene, process).await,
        Act::Stop(end) => stop(scene, end).await,
        Act::Start(end) => start(scene, end).await,
        Act::KillPod(site) => scene.local.supervisor().kill_all(site).await.map_err(told),
        Act::DeletePod(site) => scene.local.supervisor().replace(site, true).await.map_err(told),
        Act::LoseVolume(site) => scene.local.supervisor().wipe(site, Wipe::Volume).await.map_err(told),
        Act::Heal => heal(scene).await,
        // The rest is asked for in the store.
        Act::Plan(..) | Act::Reclone(_) | Act::Edit(_) | Act::ForgetRecord => Ok(()),
        Act::Person(site, deed) => person::perform(scene, site, deed).await,
        link => {
            links(scene, link);
            Ok(())
        }
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn number(operator: usize) -> u8 {
    u8::try_from(operator).unwrap_or(u8::MAX)
}

/// Remembers what holds, or that it is over.
pub(super) fn mark(scene: &Scene, whom: &str, how: &str, holds: bool) {
    let mut model = scene.model();
    let hurts = model.hurts.entry(whom.to_owned()).or_default();
    if holds {
        hurts.insert(how.to_owned());
    } else {
        hurts.remove(how);
    }
}

/// The part of a site that a process is; none: it is an operator.
fn part(process: &Process) -> Option<(&str, Part)> {
    match process {
        Process::Mysqld(site) => Some((site, Part::Mysqld)),
        Process::Keeper(site) => Some((site, Part::Keeper)),
        Process::Sidecar(site) => Some((site, Part::Sidecar)),
        Process::Operator(_) | Process::Leader => None,
    }
}

fn operator(scene: &Scene, process: &Process) -> (u8, String) {
    let which = match process {
        Process::Operator(which) => *which,
        // Before anybody was elected, one is as good as the other.
        _ => leader(scene).unwrap_or(0),
    };
    (number(which), End::Operator(which).to_string())
}

/// Who holds the operators' lease.
fn leader(scene: &Scene) -> Option<usize> {
    let holder = scene.local.store().read_lease().ok()??.holder?;
    operator_named(holder.split('_').next()?)
}

async fn kill(scene: &Scene, process: &Process) -> Result<(), String> {
    let supervisor = scene.local.supervisor();
    match part(process) {
        Some((site, part)) => supervisor.kill(site, part).await,
        None => supervisor.kill_operator(operator(scene, process).0).await,
    }
    .map_err(told)
}

async fn hold(scene: &Scene, process: &Process) -> Result<(), String> {
    let supervisor = scene.local.supervisor();
    if let Some((site, part)) = part(process) {
        supervisor.hold(site, part).await.map_err(told)?;
        mark(scene, site, if part == Part::Sidecar { SIDECAR_HELD } else { HELD }, true);
        return Ok(());
    }
    let (which, name) = operator(scene, process);
    supervisor.hold_operator(which).await.map_err(told)?;
    mark(scene, &name, HELD, true);
    Ok(())
}

async fn release(scene: &Scene, process: &Process) -> Result<(), String> {
    let supervisor = scene.local.supervisor();
    if let Some((site, part)) = part(process) {
        supervisor.release(site, part).await.map_err(told)?;
        mark(scene, site, if part == Part::Sidecar { SIDECAR_HELD } else { HELD }, false);
        return Ok(());
    }
    let (which, name) = operator(scene, process);
    supervisor.start_operator(which).await.map_err(told)?;
    for how in [HELD, STOPPED] {
        mark(scene, &name, how, false);
    }
    Ok(())
}

async fn pause(scene: &Scene, process: &Process) -> Result<(), String> {
    let supervisor = scene.local.supervisor();
    if let Some((site, part)) = part(process) {
        supervisor.pause(site, part).await.map_err(told)?;
        mark(scene, site, if part == Part::Sidecar { SIDECAR_PAUSED } else { PAUSED }, true);
        return Ok(());
    }
    let (which, name) = operator(scene, process);
    supervisor.pause_operator(which).await.map_err(told)?;
    mark(scene, &name, PAUSED, true);
    Ok(())
}

async fn resume(scene: &Scene, process: &Process) -> Result<(), String> {
    let supervisor = scene.local.supervisor();
    if let Some((site, part)) = part(process) {
        mark(scene, site, if part == Part::Sidecar { SIDECAR_PAUSED } else { PAUSED }, false);
        return supervisor.resume(site, part).await.map_err(told);
    }
    let (which, name) = operator(scene, process);
    mark(scene, &name, PAUSED, false);
    supervisor.resume_operator(which).await.map_err(told)
}

async fn stop(scene: &Scene, end: &End) -> Result<(), String> {
    let supervisor = scene.local.supervisor();
    match end {
        End::Operator(which) => supervisor.stop_operator(number(*which)).await,
        End::Site(site) => supervisor.stop(site, true).await,
        End::Clients => Ok(()),
    }
    .map_err(told)?;
    mark(scene, &end.to_string(), STOPPED, true);
    Ok(())
}

async fn start(scene: &Scene, end: &End) -> Result<(), String> {
    let supervisor = scene.local.supervisor();
    match end {
        End::Operator(which) => supervisor.start_operator(number(*which)).await,
        End::Site(site) => supervisor.start(site).await,
        End::Clients => Ok(()),
    }
    .map_err(told)?;
    for how in [STOPPED, HELD] {
        mark(scene, &end.to_string(), how, false);
    }
    Ok(())
}

fn who(end: &End) -> Who {
    Who::One(match end {
        End::Operator(which) => network::End::Operator(number(*which)),
        End::Clients => network::End::FrontDoor,
        End::Site(site) => network::End::Site(site.clone()),
    })
}

fn links(scene: &Scene, act: &Act) {
    let weather = scene.local.weather();
    let remark = |one: &End, other: &End, holds| mark(scene, &other.to_string(), &format!("cut from {one}"), holds);
    match act {
        Act::Cut(one, other) => {
            weather.cut(who(one), who(other)).stay();
            remark(one, other, true);
        }
        Act::CutOneWay(from, to) => {
            weather.cut_one_way(who(from), who(to)).stay();
            remark(from, to, true);
        }
        Act::Delay(one, other, by) => weather.delay(who(one), who(other), *by).stay(),
        Act::Mend(one, other) => {
            weather.heal_between(who(one), who(other));
            remark(one, other, false);
            remark(other, one, false);
        }
        Act::Isolate(end) => {
            weather.isolate(who(end)).stay();
            mark(scene, &end.to_string(), ISOLATED, true);
        }
        Act::Rejoin(end) => {
            weather.heal_between(who(end), Who::Anyone);
            mark(scene, &end.to_string(), ISOLATED, false);
        }
        _ => {}
    }
}

/// Undoes all that holds. What fails is told, after everything was tried.
async fn heal(scene: &Scene) -> Result<(), String> {
    scene.local.weather().heal();
    scene.guests.lock().await.shutdown().await;
    let hurts = std::mem::take(&mut scene.model().hurts);
    let mut failed = Vec::new();
    for (whom, hows) in hurts {
        let process = |kind: fn(String) -> Process| match operator_named(&whom) {
            Some(which) => Process::Operator(which),
            None => kind(whom.clone()),
        };
        for how in hows {
            let undone = match how.as_str() {
                PAUSED => resume(scene, &process(Process::Mysqld)).await,
                SIDECAR_PAUSED => resume(scene, &process(Process::Sidecar)).await,
                HELD => release(scene, &process(Process::Mysqld)).await,
                SIDECAR_HELD => release(scene, &process(Process::Sidecar)).await,
                // A server that is no replica any more has nothing to apply.
                APPLIER => person::perform(scene, &whom, &Deed::StartApplier).await.or(Ok(())),
                STOPPED => {
                    let end = operator_named(&whom).map_or_else(|| End::Site(whom.clone()), End::Operator);
                    start(scene, &end).await
                }
                _ => Ok(()),
            };
            // A paused server that was killed meanwhile needs no more.
            if let Err(why) = undone
                && !how.ends_with(PAUSED)
            {
                failed.push(why);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

fn operator_named(name: &str) -> Option<usize> {
    name.strip_prefix("operator-")?.parse().ok()
}
