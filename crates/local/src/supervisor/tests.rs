//! The supervisor with small programs instead of servers: what it starts, restarts, ends, and leaves to nobody.

use std::time::Duration;

use super::*;
use crate::assembly::Profile;
use crate::operate::Operators;
use crate::testing::{Folder, again, program, store, told, until, within};

/// A keeper whose server outlives it: what the real one's does for a moment.
const KEEPER: &str = "sleep 1000 & trap 'echo asked; kill $!; exit 0' TERM; wait";
const SIDECAR: &str = "exec sleep 1000";

struct Rig {
    folder: Folder,
    store: Store,
    supervisor: Supervisor,
}

fn setup(folder: &Folder, keeper: &str, sidecar: &str) -> Setup {
    let (store, network) = store(folder);
    let programs = Programs {
        bloodraven: program(folder, "bloodraven", sidecar),
        keeper: program(folder, "keeper", keeper),
        mysql: MysqlPrograms::plain("mysqld"),
    };
    let operators = Operators::ensure(&store, 1, Profile::Default.election()).unwrap().uids;
    let backoff =
        Backoff { first: Duration::from_millis(10), most: Duration::from_millis(200), calm: Duration::from_mins(1) };
    let run = folder.path().join("run");
    let sites = vec!["iad".to_owned(), "pdx".to_owned()];
    let (template, log_level) = (None, "info".to_owned());
    Setup { store, network, programs, template, backoff, run, sites, operators, log_level }
}

fn rig(keeper: &str, sidecar: &str) -> Rig {
    let folder = Folder::new();
    let setup = setup(&folder, keeper, sidecar);
    Rig { supervisor: Supervisor::new(&setup), store: setup.store, folder }
}

impl Rig {
    fn state(&self, site: &str) -> SiteState {
        self.supervisor.site_states()[site].clone()
    }

    /// Waits until the site is like that.
    async fn is(&self, site: &str, what: &str, like: impl Fn(&SiteState) -> bool) -> SiteState {
        let mut state = self.supervisor.watch_site(site).unwrap();
        within(what, state.wait_for(|state| like(state))).await.unwrap().clone()
    }

    /// A site that runs, its server included.
    async fn started(&self, site: &str) -> SiteState {
        within("start", self.supervisor.start(site)).await.unwrap();
        let state = self.state(site);
        until("its server runs", || state.mysqld_pid()).await;
        state
    }

    fn pod(&self, uid: &str) -> Option<store::pods::PodFile> {
        self.store.pods().unwrap().into_iter().find(|pod| pod.uid == uid)
    }
}

fn lives(pid: u32) -> bool {
    proc::stat(pid).is_some_and(proc::Stat::lives)
}

fn count(uid: &str) -> usize {
    proc::members(POD_VARIABLE, uid).len()
}

#[tokio::test]
async fn a_pod_is_written_down_with_what_runs_of_it() {
    let rig = rig(KEEPER, SIDECAR);
    let state = rig.started("iad").await;
    let uid = state.pod.clone().unwrap();
    let file = rig.pod(&uid).unwrap();
    assert_eq!((file.site.as_str(), file.started, file.deleting, file.ended), ("iad", true, false, false));
    assert_eq!((file.keeper_pid, file.sidecar_pid), (state.keeper_pid, state.sidecar_pid));
    assert_eq!(count(&uid), 3, "keeper, server and sidecar");
    assert!(rig.folder.path().join("sites/iad/my.cnf").exists());
    within("again", rig.supervisor.start("iad")).await.unwrap();
    assert_eq!(rig.state("iad"), state, "a site has one life at a time");
}

#[tokio::test]
async fn what_ends_is_started_again_in_the_same_life() {
    let rig = rig(KEEPER, SIDECAR);
    let first = rig.started("iad").await;
    within("kill", rig.supervisor.kill("iad", Part::Sidecar)).await.unwrap();
    let second = rig.is("iad", "a new sidecar", |it| it.sidecar_starts == 2 && it.sidecar_pid.is_some()).await;
    assert_eq!((&second.pod, second.keeper_pid), (&first.pod, first.keeper_pid));
    assert!(second.sidecar_pid != first.sidecar_pid);
    let server = first.mysqld_pid().unwrap();
    within("kill", rig.supervisor.kill("iad", Part::Keeper)).await.unwrap();
    let third = rig.is("iad", "a new keeper", |it| it.keeper_starts == 2 && it.keeper_pid.is_some()).await;
    assert!(!lives(server), "what the earlier keeper left is gone before the next one starts");
    assert_eq!((&third.pod, third.sidecar_pid), (&first.pod, second.sidecar_pid));
    let file = rig.pod(&first.pod.unwrap()).unwrap();
    assert_eq!((file.keeper_pid, file.ended), (third.keeper_pid, false));
}

#[tokio::test]
async fn a_killed_server_is_its_keepers_business() {
    let rig = rig(KEEPER, SIDECAR);
    let state = rig.started("iad").await;
    let server = state.mysqld_pid().unwrap();
    within("kill", rig.supervisor.kill("iad", Part::Mysqld)).await.unwrap();
    assert!(!lives(server));
    let again = rig.is("iad", "a new keeper", |it| it.keeper_starts == 2 && it.keeper_pid.is_some()).await;
    assert_eq!(again.pod, state.pod);
}

#[tokio::test]
async fn a_replaced_pod_has_ended_for_certain_and_the_next_is_another_life() {
    let rig = rig(KEEPER, SIDECAR);
    for graceful in [false, true] {
        let before = rig.started("iad").await;
        let uid = before.pod.clone().unwrap();
        within("replace", rig.supervisor.replace("iad", graceful)).await.unwrap();
        assert_eq!(count(&uid), 0);
        let file = rig.pod(&uid).unwrap();
        assert!(file.ended && file.deleting && file.keeper_pid.is_none() && file.sidecar_pid.is_none());
        assert!(rig.store.pod_facts(&file).unwrap().has_ended());
        let after = rig.state("iad");
        assert!(after.pod.is_some() && after.pod != before.pod && after.keeper_starts == 1);
        rig.store.release_pod(&uid).unwrap();
        assert!(rig.pod(&uid).is_none());
    }
    let log = std::fs::read_to_string(rig.folder.path().join("sites/iad/log/mysql.log")).unwrap();
    assert_eq!(log.matches("asked").count(), 1, "only the graceful end asks");
}

#[tokio::test]
async fn what_is_held_stays_away_until_it_is_released() {
    let rig = rig(KEEPER, SIDECAR);
    let state = rig.started("iad").await;
    within("hold", rig.supervisor.hold("iad", Part::Sidecar)).await.unwrap();
    within("hold", rig.supervisor.hold("iad", Part::Mysqld)).await.unwrap();
    assert_eq!((rig.state("iad").sidecar_pid, rig.state("iad").keeper_pid), (None, None));
    let mut state_of = rig.supervisor.watch_site("iad").unwrap();
    let back = state_of.wait_for(|it| it.sidecar_pid.or(it.keeper_pid).is_some());
    // Longer than any wait of the backoff of these tests.
    assert!(tokio::time::timeout(Duration::from_millis(500), back).await.is_err());
    within("release", rig.supervisor.release("iad", Part::Sidecar)).await.unwrap();
    within("release", rig.supervisor.release("iad", Part::Mysqld)).await.unwrap();
    let after = rig.state("iad");
    assert!(after.sidecar_pid.is_some() && after.keeper_pid.is_some());
    assert_eq!(after.pod, state.pod, "the same life");
}

#[tokio::test]
async fn a_paused_part_stands_still_until_it_is_resumed() {
    let rig = rig(KEEPER, SIDECAR);
    let state = rig.started("iad").await;
    let pids = [
        (Part::Sidecar, state.sidecar_pid.unwrap()),
        (Part::Keeper, state.keeper_pid.unwrap()),
        (Part::Mysqld, state.mysqld_pid().unwrap()),
    ];
    for (part, pid) in pids {
        within("pause", rig.supervisor.pause("iad", part)).await.unwrap();
        assert_eq!(proc::stat(pid).map(|it| it.state), Some('T'), "{part:?}");
        within("resume", rig.supervisor.resume("iad", part)).await.unwrap();
        until("it goes on", || (!proc::stands_still(pid)).then_some(())).await;
    }
    within("pause", rig.supervisor.pause("iad", Part::Sidecar)).await.unwrap();
    within("a paused one ends, too", rig.supervisor.stop("iad", true)).await.unwrap();
    assert_eq!(count(&state.pod.unwrap()), 0);
}

#[tokio::test]
async fn a_stopped_site_stays_away_and_its_verbs_say_so() {
    let rig = rig(KEEPER, SIDECAR);
    let state = rig.started("iad").await;
    within("stop", rig.supervisor.stop("iad", true)).await.unwrap();
    assert_eq!(rig.state("iad"), SiteState::default());
    within("stop again", rig.supervisor.stop("iad", true)).await.unwrap();
    for verb in [rig.supervisor.kill("iad", Part::Sidecar).await, rig.supervisor.pause("iad", Part::Mysqld).await] {
        let error = verb.unwrap_err().to_string();
        assert!(error.contains("iad: it is stopped; start it first"), "{error}");
    }
    assert!(rig.pod(&state.pod.unwrap()).unwrap().ended);
    let error = rig.supervisor.kill("lax", Part::Keeper).await.unwrap_err().to_string();
    assert!(error.contains("no site \"lax\"") && error.contains("iad, pdx"), "{error}");
    let error = rig.supervisor.kill_operator(4).await.unwrap_err().to_string();
    assert!(error.contains("no operator 4"), "{error}");
}

#[tokio::test]
async fn a_wiped_site_begins_with_nothing() {
    let rig = rig(KEEPER, SIDECAR);
    let folder = rig.folder.path().join("sites/iad");
    for (wipe, state_stays) in [(Wipe::Data, true), (Wipe::Volume, false)] {
        let before = rig.started("iad").await;
        std::fs::write(folder.join("data/ibdata1"), "x").unwrap();
        std::fs::write(folder.join("state/view"), "x").unwrap();
        within("wipe", rig.supervisor.wipe("iad", wipe)).await.unwrap();
        assert!(!folder.join("data/ibdata1").exists(), "{wipe:?}");
        assert_eq!(folder.join("state/view").exists(), state_stays, "{wipe:?}");
        assert!(folder.join(plan::CLAIM).exists(), "the new volume is this group's");
        assert!(rig.state("iad").pod.is_some_and(|pod| Some(pod) != before.pod));
    }
}

#[tokio::test]
async fn what_fails_at_once_is_tried_again_with_growing_patience() {
    let rig = rig("exit 3", SIDECAR);
    within("start", rig.supervisor.start("iad")).await.unwrap();
    rig.is("iad", "the keeper is tried again", |it| it.keeper_starts >= 4).await;
    let state = rig.state("iad");
    assert_eq!(state.sidecar_starts, 1, "the sidecar is left alone");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_with_its_name() {
    let rig = rig(KEEPER, SIDECAR);
    std::fs::remove_file(rig.folder.path().join("keeper")).unwrap();
    let error = within("start", rig.supervisor.start("iad")).await.unwrap_err().to_string();
    assert!(error.contains("keeper of iad: cannot start") && error.contains("/keeper"), "{error}");
}

#[tokio::test]
async fn everything_ends_with_the_supervisor() {
    let rig = rig(KEEPER, SIDECAR);
    let (iad, pdx) = (rig.started("iad").await.pod.unwrap(), rig.started("pdx").await.pod.unwrap());
    within("operator", rig.supervisor.start_operator(0)).await.unwrap();
    let operator = rig.supervisor.operator_states()[0].pid.unwrap();
    let Rig { supervisor, store, folder: _folder } = rig;
    within("end", supervisor.end(true)).await.unwrap();
    assert_eq!((count(&iad), count(&pdx)), (0, 0));
    assert!(!lives(operator));
    assert!(store.pods().unwrap().iter().all(|pod| pod.ended));
}

#[tokio::test]
async fn an_operator_keeps_its_name_through_kills_and_pauses() {
    let rig = rig(KEEPER, SIDECAR);
    let state = || rig.supervisor.operator_states()[0];
    within("start", rig.supervisor.start_operator(0)).await.unwrap();
    let first = state().pid.unwrap();
    let uid = Operators::read(&rig.store).unwrap().unwrap().uids[0].clone();
    // A program that has just begun has no environment to show for a moment.
    let bears_its_name = async |pid| until("it bears its name", || is_named(pid, &uid)).await;
    bears_its_name(first).await;
    within("kill", rig.supervisor.kill_operator(0)).await.unwrap();
    until("it is started again", || (state().starts == 2 && state().pid.is_some()).then_some(())).await;
    let second = state().pid.unwrap();
    assert_ne!(second, first);
    bears_its_name(second).await;
    within("pause", rig.supervisor.pause_operator(0)).await.unwrap();
    assert_eq!(proc::stat(second).map(|it| it.state), Some('T'));
    let _free = rig.store.lock().unwrap();
    within("resume", rig.supervisor.resume_operator(0)).await.unwrap();
    within("hold", rig.supervisor.hold_operator(0)).await.unwrap();
    assert_eq!(state().pid, None);
    within("start", rig.supervisor.start_operator(0)).await.unwrap();
    within("stop", rig.supervisor.stop_operator(0)).await.unwrap();
    assert_eq!((state().pid, state().starts), (None, 3));
}

fn is_named(pid: u32, uid: &str) -> Option<()> {
    proc::is_member(pid, POD_VARIABLE, uid).then_some(())
}

/// Tells a copy of this test program in which folder to supervise until it is killed.
const SUPERVISE_IN: &str = "BLOODRAVEN_TEST_SUPERVISE_IN";

/// Not a test by itself: a supervisor that is killed by the test below.
#[tokio::test]
async fn holder() {
    let Some(dir) = told(SUPERVISE_IN) else { return };
    let store = Store::open(&dir).unwrap();
    let network = Network::read(&dir).unwrap();
    let programs = Programs {
        bloodraven: dir.join("bloodraven"),
        keeper: dir.join("keeper"),
        mysql: MysqlPrograms::plain("mysqld"),
    };
    let setup = Setup {
        run: dir.join("run"),
        store,
        network,
        programs,
        template: None,
        backoff: Backoff::default(),
        sites: vec!["iad".to_owned()],
        operators: Vec::new(),
        log_level: "info".to_owned(),
    };
    let supervisor = Supervisor::new(&setup);
    supervisor.start("iad").await.unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_outlives_a_supervisor_that_is_killed() {
    let folder = Folder::new();
    let setup = setup(&folder, "exec sleep 1000", SIDECAR);
    let mut holder = again("supervisor::tests::holder", SUPERVISE_IN, folder.path()).spawn().unwrap();
    let running = |store: &Store| {
        let pods = store.pods().unwrap();
        pods.into_iter().find(|pod| pod.keeper_pid.is_some() && pod.sidecar_pid.is_some())
    };
    let pod = until("its pod runs", || running(&setup.store)).await;
    until("both run their programs", || (count(&pod.uid) == 2).then_some(())).await;
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("both are gone", || (count(&pod.uid) == 0).then_some(())).await;
    crate::assembly::bury(&setup.store).await.unwrap();
    let pods = setup.store.pods().unwrap();
    assert!(pods.iter().all(|pod| pod.ended) && pods.len() == 1, "the next run sees the end and writes it down");
}
