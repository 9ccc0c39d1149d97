//! What is printed is read back, and nothing else is read.

use super::*;

fn start(number: u64) -> StartId {
    StartId::new(number).unwrap()
}

fn permit() -> Permit {
    Permit { start: start(7), epoch: 12, deadline: 34_567 }
}

fn status() -> Status {
    Status {
        pid: Some(41),
        start: Some(start(7)),
        started: Some(1000),
        mysqld: Mysqld::Running,
        code: None,
        permit: Some(permit()),
        stopping: false,
    }
}

#[test]
fn every_request_has_one_text() {
    let check = |request: Request, text: &str| {
        assert_eq!(request.to_string(), text);
        assert_eq!(text.parse(), Ok(request));
    };
    check(Request::Status, "status");
    check(Request::Hello, "hello");
    check(Request::Opener, "opener");
    check(Request::Permit(permit()), "permit start=7 epoch=12 deadline=34567");
    check(Request::Renew(permit()), "renew start=7 epoch=12 deadline=34567");
    check(Request::Fenced { start: start(7) }, "fenced start=7");
    check(Request::Kill { start: start((1 << 53) - 1) }, "kill start=9007199254740991");
    check(Request::Empty { start: start(7) }, "empty start=7");
    check(Request::Stop, "stop");
}

#[test]
fn every_line_of_the_keeper_has_one_text() {
    let check = |line: Line, text: &str| {
        assert_eq!(line.to_string(), text);
        assert_eq!(text.parse(), Ok(line));
    };
    let reply = |reply: Reply, text: &str| check(Line::Reply(reply), text);
    let running = "status pid=41 start=7 started=1000 mysqld=running code=- permit=7,12,34567 stopping=0";
    reply(Reply::Status(status()), running);
    let none = Status { pid: None, start: None, started: None, code: Some(137), permit: None, ..status() };
    let ended = Status { mysqld: Mysqld::Killed, stopping: true, ..none };
    reply(Reply::Status(ended), "status pid=- start=- started=- mysqld=killed code=137 permit=- stopping=1");
    for (mysqld, text) in
        [(Mysqld::Booting, "booting"), (Mysqld::Initialising, "initialising"), (Mysqld::Exited, "exited")]
    {
        let text = running.replace("mysqld=running", &format!("mysqld={text}"));
        reply(Reply::Status(Status { mysqld, ..status() }), &text);
    }
    reply(Reply::Welcome, "welcome");
    let password = Password::new("00ffAb").unwrap();
    reply(Reply::Opener { start: start(7), password }, "opener start=7 password=00ffAb");
    reply(Reply::Permitted, "permitted");
    reply(Reply::Renewed, "renewed");
    reply(Reply::Noted, "noted");
    reply(Reply::Killed { start: start(7) }, "killed start=7");
    reply(Reply::Emptying { start: start(7) }, "emptying start=7");
    reply(Reply::Stopping, "stopping");
    for (why, text) in [
        (Refusal::NotTheSession, "not-the-session"),
        (Refusal::NotRunning, "not-running"),
        (Refusal::OtherStart, "other-start"),
        (Refusal::Stopping, "stopping"),
        (Refusal::Past, "past"),
        (Refusal::NoPermit, "no-permit"),
        (Refusal::Permit, "permit"),
    ] {
        reply(Reply::Refused(why), &format!("refused why={text}"));
    }
    reply(Reply::Error { why: "unknown-verb-open".into() }, "error why=unknown-verb-open");
    check(Line::Unasked(Unasked::Started { start: start(7) }), "!started start=7");
    check(Line::Unasked(Unasked::Exited { start: start(7), code: 16 }), "!exited start=7 code=16");
    check(Line::Unasked(Unasked::Exited { start: start(7), code: -1 }), "!exited start=7 code=-1");
    check(Line::Unasked(Unasked::Stopping), "!stopping");
    check(Line::Unasked(Unasked::Superseded), "!superseded");
}

#[test]
fn what_is_no_request_is_told_in_one_word() {
    let check = |line: &str, why: &str| {
        let error = line.parse::<Request>().unwrap_err().to_string();
        assert_eq!(error, why, "{line:?}");
        assert!(format!("error why={error}").parse::<Reply>().is_ok(), "{line:?}");
    };
    check("", "empty-line");
    check("   ", "empty-line");
    check("open", "unknown-verb-open");
    check("STATUS", "unknown-verb-STATUS");
    check("\u{1f5dd}key=1", "unknown-verb--key-1");
    check(&"x".repeat(4000), &format!("unknown-verb-{}", "x".repeat(32)));
    check("status now", "unexpected-word-now");
    check("status a=1", "unexpected-word-a-1");
    check("kill", "missing-start");
    check("kill start=1 start=1", "unexpected-word-start-1");
    check("kill start=0", "bad-value-of-start");
    check("kill start=9007199254740992", "bad-value-of-start");
    check("kill start=-1", "bad-value-of-start");
    check("kill start=+1", "bad-value-of-start");
    check("kill start=01", "bad-value-of-start");
    check("permit start=1 epoch=1", "missing-deadline");
    check("permit start=1 epoch=x deadline=1", "bad-value-of-epoch");
    check("renew start=1 epoch=1 deadline=99999999999999999999", "bad-value-of-deadline");
}

#[test]
fn what_is_no_line_of_the_keeper_is_refused() {
    for line in [
        "",
        "welcome back",
        "opener start=7 password=",
        "refused why=because",
        "status pid=- start=- started=- mysqld=odd code=- permit=- stopping=0",
        "status pid=- start=- started=- mysqld=exited code=- permit=7,12 stopping=0",
        "status pid=- start=- started=- mysqld=exited code=- permit=- stopping=2",
        "!started",
        "!exited start=7",
        "!hello",
    ] {
        assert!(line.parse::<Line>().is_err(), "{line:?}");
    }
}

#[test]
fn the_order_of_words_and_spare_blanks_do_not_matter() {
    let odd = "  permit  deadline=34567 epoch=12   start=7 ";
    assert_eq!(odd.parse(), Ok(Request::Permit(permit())));
}

#[test]
fn a_password_is_one_word_and_not_shown() {
    for bad in ["", "a b", "a\n", "é"] {
        assert!(Password::new(bad).is_none(), "{bad:?}");
    }
    let password = Password::new("s3cret").unwrap();
    assert_eq!(password.reveal(), "s3cret");
    let reply = Reply::Opener { start: start(1), password };
    assert!(!format!("{reply:?}").contains("s3cret"));
}
