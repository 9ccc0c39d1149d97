//! Permits, the dead man, sessions, stopping and restarts, without a process.

use super::*;

const SIDECAR: ClientId = ClientId(1);
const OTHER: ClientId = ClientId(2);

fn start(number: u64) -> StartId {
    StartId::new(number).unwrap()
}

fn permit(number: u64, deadline: u64) -> Permit {
    Permit { start: start(number), epoch: 5, deadline }
}

/// A keeper whose mysqld runs as start 7, with the sidecar's session.
fn running() -> State {
    let mut state = State::new();
    state.started(Server::new(41, start(7), 100, Password::new("s3cret").unwrap()), &mut Vec::new());
    state.init_file_closed(true, &mut Vec::new());
    state.asked(100, SIDECAR, Request::Hello, &mut Vec::new());
    state
}

/// A keeper that holds a permit until 10 000.
fn permitted() -> State {
    let mut state = running();
    assert_eq!(ask(&mut state, 200, Request::Permit(permit(7, 10_000))), Reply::Permitted);
    state
}

/// The effects of something, without the log.
fn effects(happens: impl FnOnce(&mut Vec<Effect>)) -> Vec<Effect> {
    let mut out = Vec::new();
    happens(&mut out);
    out.retain(|effect| !matches!(effect, Effect::Log(_)));
    out
}

fn asked(state: &mut State, now: u64, client: ClientId, request: Request) -> Vec<Effect> {
    effects(|out| state.asked(now, client, request, out))
}

/// The sidecar's request and its one answer.
fn ask(state: &mut State, now: u64, request: Request) -> Reply {
    match asked(state, now, SIDECAR, request).as_slice() {
        [Effect::Say(SIDECAR, Line::Reply(reply))] => reply.clone(),
        other => panic!("{request}: {other:?}"),
    }
}

fn refused(state: &mut State, now: u64, request: Request, why: Refusal) {
    assert_eq!(ask(state, now, request), Reply::Refused(why), "{request}");
}

fn unasked(word: Unasked) -> Effect {
    Effect::Say(SIDECAR, Line::Unasked(word))
}

fn status(state: &State) -> Status {
    state.status()
}

fn exit(code: i32) -> End {
    End { code, by_signal: false }
}

const KILLED: End = End { code: 137, by_signal: true };

/// F-42.
#[test]
fn a_permit_is_bound_to_the_running_start_and_a_renewal_makes_none() {
    let mut state = running();
    refused(&mut state, 200, Request::Permit(permit(8, 10_000)), Refusal::OtherStart);
    refused(&mut state, 200, Request::Renew(permit(7, 10_000)), Refusal::NoPermit);
    refused(&mut state, 10_000, Request::Permit(permit(7, 10_000)), Refusal::Past);
    assert_eq!(status(&state).permit, None);
    assert_eq!(ask(&mut state, 200, Request::Permit(permit(7, 10_000))), Reply::Permitted);
    refused(&mut state, 200, Request::Renew(permit(8, 20_000)), Refusal::OtherStart);
    assert_eq!(ask(&mut state, 300, Request::Renew(permit(7, 20_000))), Reply::Renewed);
    assert_eq!(status(&state).permit, Some(permit(7, 20_000)));
    let out = effects(|out| state.reaped(41, exit(16), out));
    assert_eq!(out, [Effect::RemoveInitFile, unasked(Unasked::Exited { start: start(7), code: 16 }), Effect::Start]);
    let out = effects(|out| state.started(Server::new(42, start(9), 400, Password::new("x").unwrap()), out));
    assert_eq!(out, [unasked(Unasked::Started { start: start(9) })]);
    assert_eq!((status(&state).permit, status(&state).mysqld), (None, Mysqld::Booting));
    refused(&mut state, 500, Request::Renew(permit(7, 20_000)), Refusal::OtherStart);
    refused(&mut state, 500, Request::Renew(permit(9, 20_000)), Refusal::NoPermit);
    refused(&mut state, 500, Request::Permit(permit(7, 20_000)), Refusal::OtherStart);
}

/// F-32.
#[test]
fn the_dead_man_comes_2500_ms_after_the_deadline_and_once() {
    let mut state = permitted();
    assert_eq!(state.wake(), Some(12_500));
    state.gone(SIDECAR);
    assert_eq!(effects(|out| state.time(12_499, out)), []);
    assert_eq!(effects(|out| state.time(12_500, out)), [Effect::Kill]);
    assert_eq!(effects(|out| state.time(13_000, out)), []);
    assert_eq!(state.wake(), None);
    assert_eq!(effects(|out| state.reaped(41, KILLED, out)), [Effect::RemoveInitFile, Effect::End(137)]);
    assert_eq!((status(&state).mysqld, status(&state).code), (Mysqld::Killed, Some(137)));
}

#[test]
fn a_confirmed_fence_withdraws_and_a_killed_server_gets_no_permit() {
    let mut state = permitted();
    assert_eq!(ask(&mut state, 300, Request::Fenced { start: start(8) }), Reply::Noted);
    assert!(state.holds_permit(), "another start's fence");
    assert_eq!(ask(&mut state, 300, Request::Fenced { start: start(7) }), Reply::Noted);
    assert!(!state.holds_permit());
    assert_eq!(effects(|out| state.time(1_000_000, out)), []);
    let mut state = permitted();
    state.time(12_500, &mut Vec::new());
    refused(&mut state, 12_501, Request::Renew(permit(7, 99_000)), Refusal::OtherStart);
    refused(&mut state, 12_501, Request::Permit(permit(7, 99_000)), Refusal::OtherStart);
    refused(&mut state, 12_501, Request::Opener, Refusal::NotRunning);
}

/// F-42.
#[test]
fn a_new_hello_shuts_the_older_session_and_others_only_read() {
    let mut state = permitted();
    let session_only = [
        Request::Opener,
        Request::Permit(permit(7, 20_000)),
        Request::Renew(permit(7, 20_000)),
        Request::Fenced { start: start(7) },
        Request::Kill { start: start(7) },
        Request::Stop,
    ];
    for request in session_only {
        let refusal = Line::Reply(Reply::Refused(Refusal::NotTheSession));
        assert_eq!(asked(&mut state, 300, OTHER, request), [Effect::Say(OTHER, refusal)]);
    }
    let seen = Line::Reply(Reply::Status(status(&state)));
    assert_eq!(asked(&mut state, 300, OTHER, Request::Status), [Effect::Say(OTHER, seen)]);
    assert_eq!(status(&state).permit, Some(permit(7, 10_000)));
    let welcome = Effect::Say(OTHER, Line::Reply(Reply::Welcome));
    let out = asked(&mut state, 300, OTHER, Request::Hello);
    assert_eq!(out, [unasked(Unasked::Superseded), Effect::Close(SIDECAR), welcome.clone()]);
    refused(&mut state, 300, Request::Renew(permit(7, 20_000)), Refusal::NotTheSession);
    assert_eq!(asked(&mut state, 300, OTHER, Request::Hello), [welcome], "the same one again is no other");
    assert_eq!(status(&state).permit, Some(permit(7, 10_000)), "the permit stays");
}

#[test]
fn a_kill_is_answered_when_the_process_is_reaped() {
    let mut state = running();
    refused(&mut state, 300, Request::Kill { start: start(8) }, Refusal::OtherStart);
    let kill = Request::Kill { start: start(7) };
    assert_eq!(asked(&mut state, 300, SIDECAR, kill), [Effect::Kill]);
    assert_eq!(asked(&mut state, 310, SIDECAR, kill), []);
    assert!(matches!(ask(&mut state, 310, Request::Status), Reply::Status(_)));
    assert_eq!(effects(|out| state.reaped(99, exit(0), out)), [], "an orphan");
    let killed = || Effect::Say(SIDECAR, Line::Reply(Reply::Killed { start: start(7) }));
    let exited = unasked(Unasked::Exited { start: start(7), code: 137 });
    let out = effects(|out| state.reaped(41, KILLED, out));
    assert_eq!(out, [Effect::RemoveInitFile, killed(), killed(), exited, Effect::End(137)]);
}

#[test]
fn the_end_of_mysqld_is_the_end_of_the_keeper() {
    let check = |end: End, code: u8| {
        let mut state = running();
        let out = effects(|out| state.reaped(41, end, out));
        assert_eq!(out.last(), Some(&Effect::End(code)), "{end:?}");
    };
    check(exit(0), 0);
    check(exit(1), 1);
    check(KILLED, 137);
    check(End { code: 139, by_signal: true }, 139);
    // Killed by signal 16 is no wish for a restart, nor is any end after a stop.
    check(End { code: 144, by_signal: true }, 144);
    let mut state = running();
    asked(&mut state, 300, SIDECAR, Request::Stop);
    let out = effects(|out| state.reaped(41, exit(16), out));
    assert_eq!(out.last(), Some(&Effect::End(16)));
}

#[test]
fn a_stop_waits_for_the_fence_only_while_somebody_could_fence() {
    let fenced = Request::Fenced { start: start(7) };
    // Writable, with a session: five seconds.
    let mut state = permitted();
    assert_eq!(effects(|out| state.told_to_end(1000, out)), [unasked(Unasked::Stopping)]);
    assert_eq!(effects(|out| state.told_to_end(1100, out)), [], "told once");
    refused(&mut state, 1200, Request::Permit(permit(7, 10_000)), Refusal::Stopping);
    assert_eq!(effects(|out| state.time(5999, out)), []);
    assert_eq!(effects(|out| state.time(6000, out)), [Effect::Terminate]);
    assert_eq!(effects(|out| state.time(12_500, out)), [Effect::Kill], "the dead man still watches");
    // Fenced in time.
    let mut state = permitted();
    state.told_to_end(1000, &mut Vec::new());
    let out = asked(&mut state, 1200, SIDECAR, fenced);
    assert_eq!(out, [say(SIDECAR, Reply::Noted), Effect::Terminate]);
    assert_eq!(state.wake(), None);
    // A new session hears of it.
    let mut state = permitted();
    state.told_to_end(1000, &mut Vec::new());
    let out = asked(&mut state, 1100, OTHER, Request::Hello);
    assert_eq!(out.last(), Some(&Effect::Say(OTHER, Line::Unasked(Unasked::Stopping))));
    // Nothing to wait for: no permit, or no session.
    let mut state = running();
    let out = effects(|out| state.told_to_end(1000, out));
    assert_eq!(out, [unasked(Unasked::Stopping), Effect::Terminate]);
    let mut state = permitted();
    state.gone(SIDECAR);
    assert_eq!(effects(|out| state.told_to_end(1000, out)), [Effect::Terminate]);
    // The sidecar asks for it.
    let mut state = running();
    let out = asked(&mut state, 1000, SIDECAR, Request::Stop);
    assert_eq!(out, [say(SIDECAR, Reply::Stopping), Effect::Terminate]);
    assert!(status(&state).stopping);
}

#[test]
fn a_first_boot_ends_in_a_start_or_in_the_end() {
    let initialising = || {
        let mut state = State::new();
        state.initialising(40);
        assert_eq!(status(&state).mysqld, Mysqld::Initialising);
        state
    };
    let mut state = initialising();
    state.asked(100, SIDECAR, Request::Hello, &mut Vec::new());
    refused(&mut state, 100, Request::Opener, Refusal::NotRunning);
    refused(&mut state, 100, Request::Permit(permit(7, 900)), Refusal::OtherStart);
    refused(&mut state, 100, Request::Kill { start: start(7) }, Refusal::OtherStart);
    assert_eq!(effects(|out| state.reaped(40, exit(0), out)), [Effect::FirstBootDone, Effect::Start]);
    assert_eq!(effects(|out| initialising().reaped(40, exit(1), out)), [Effect::FirstBootFailed(1)]);
    let mut state = initialising();
    assert_eq!(effects(|out| state.told_to_end(100, out)), [Effect::Kill]);
    assert_eq!(effects(|out| state.reaped(40, KILLED, out)), [Effect::End(143)]);
}

#[test]
fn a_refused_init_file_ends_mysqld_and_the_keeper_with_an_error() {
    let mut state = State::new();
    state.started(Server::new(41, start(7), 100, Password::new("x").unwrap()), &mut Vec::new());
    let out = effects(|out| state.init_file_closed(false, out));
    assert_eq!(out, [Effect::RemoveInitFile, Effect::Terminate]);
    assert_eq!(effects(|out| state.reaped(41, exit(0), out)), [Effect::RemoveInitFile, Effect::End(1)]);
}

/// A server that is or may be writable is never emptied; one that is to be emptied never becomes writable.
#[test]
fn only_a_closed_server_of_that_start_is_emptied_and_it_gets_no_permit() {
    let empty = Request::Empty { start: start(7) };
    let mut state = permitted();
    refused(&mut state, 300, empty, Refusal::Permit);
    refused(&mut state, 300, Request::Empty { start: start(8) }, Refusal::OtherStart);
    assert_eq!(asked(&mut state, 300, OTHER, empty), [say(OTHER, Reply::Refused(Refusal::NotTheSession))]);
    assert_eq!(ask(&mut state, 400, Request::Fenced { start: start(7) }), Reply::Noted);
    let out = asked(&mut state, 500, SIDECAR, empty);
    let marked_first = [Effect::MarkForEmptying, Effect::Terminate];
    assert_eq!(out, [marked_first.as_slice(), &[say(SIDECAR, Reply::Emptying { start: start(7) })]].concat());
    refused(&mut state, 600, Request::Permit(permit(7, 10_000)), Refusal::OtherStart);
    refused(&mut state, 600, Request::Opener, Refusal::NotRunning);
    refused(&mut state, 600, empty, Refusal::OtherStart);
    assert_eq!(state.wake(), Some(5500));
    assert_eq!(effects(|out| state.time(5499, out)), []);
    assert_eq!(effects(|out| state.time(5500, out)), [Effect::Kill]);
    assert_eq!(effects(|out| state.time(6000, out)), [], "once");
    let out = effects(|out| state.reaped(41, KILLED, out));
    let exited = unasked(Unasked::Exited { start: start(7), code: 137 });
    assert_eq!(out, [Effect::RemoveInitFile, exited, Effect::FirstBootAgain]);
    // Stopping first: nothing is marked. Stopping afterwards: the next keeper goes on.
    let mut state = running();
    asked(&mut state, 300, SIDECAR, Request::Stop);
    refused(&mut state, 400, empty, Refusal::Stopping);
    let mut state = running();
    asked(&mut state, 300, SIDECAR, empty);
    state.told_to_end(400, &mut Vec::new());
    let out = effects(|out| state.reaped(41, exit(0), out));
    assert_eq!(out.last(), Some(&Effect::End(0)));
}
