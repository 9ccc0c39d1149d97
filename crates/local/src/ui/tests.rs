//! The screen on a terminal of memory: what is drawn is compared with a committed picture, and keys with wishes.

use super::{Screen, Wish, draw, pressed};
use crate::ledger::Verdict;
use crate::playground::picture::{Authority, By, Entry, LoadPicture, OperatorPicture, Picture, SitePicture, State};
use crate::script::{Act, End, Process};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn site(name: &str, state: &str, transactions: u64) -> SitePicture {
    SitePicture {
        name: name.into(),
        role: "primary-candidate".into(),
        state: state.into(),
        following: state == "read-only",
        lag: (state == "read-only").then_some(0),
        transactions,
        epoch: Some(4),
        lease_ms: (state == "writable").then_some(17_340),
        mysqld: "up".into(),
        writes_per_second: if state == "writable" { 149 } else { 0 },
        ..SitePicture::default()
    }
}

fn healthy() -> Picture {
    let fra = SitePicture { role: "dr-only".into(), ..site("fra", "read-only", 9120) };
    Picture {
        at: "2026-01-02T03:04:05.678Z".into(),
        state: State::Ready,
        authority: Authority {
            epoch: 4,
            tenure: 4,
            phase: "Stable".into(),
            site: "iad".into(),
            cause: "Bootstrap".into(),
            proof: String::new(),
        },
        sites: vec![site("iad", "writable", 9123), site("pdx", "read-only", 9123), fra],
        operators: vec![OperatorPicture { pid: Some(7), answers: true, ..OperatorPicture::default() }],
        load: LoadPicture {
            on: true,
            door_per_second: 75,
            reads_per_second: 10,
            acknowledged: 9000,
            ..LoadPicture::default()
        },
        ledger: Some(Verdict::default()),
        ..Picture::default()
    }
}

fn entry(time: &str, by: By, reason: &str, message: &str) -> Entry {
    Entry { at: format!("2026-01-02T{time}Z"), by, reason: reason.into(), message: message.into() }
}

fn screen() -> Screen {
    let mut screen = Screen::default();
    for _ in 0..30 {
        screen.take(healthy(), true);
    }
    screen.note(entry("03:04:00.001", By::Operator, "AuthorityChanged", "epoch 4: iad may write (Bootstrap)"));
    screen
}

/// After the primary was killed: nobody writes.
fn failing() -> Screen {
    let mut screen = screen();
    let mut picture = healthy();
    let iad = &mut picture.sites[0];
    *iad = SitePicture { lag: None, hurt: vec!["paused".into()], lease_ms: None, ..site("iad", "unreachable", 9123) };
    iad.divergent = 3;
    picture.authority =
        Authority { epoch: 5, phase: "Revoking".into(), cause: "Emergency".into(), ..Authority::default() };
    picture.load.silence_ms = 6240;
    picture.load.gap_ms = 6240;
    picture.alert = Some("NO PRIMARY".into());
    picture.ledger = Some(Verdict { wrong_side: 1, stranded: 2, reported: 3, ..Verdict::default() });
    for second in 0..7 {
        picture.load.silence_ms = second * 1040;
        screen.take(picture.clone(), true);
    }
    screen.note(entry("03:04:05.000", By::Hand, "deed", "kill mysqld iad"));
    screen.note(entry("03:04:11.120", By::Warning, "FailoverStarted", "iad is unreachable: 3 polls failed"));
    screen.selected = 1;
    screen
}

fn drawn(screen: &Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, screen)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..height).map(row).collect()
}

/// A difference shows both; what is drawn now is left beside the build for whoever wants to accept it.
#[track_caller]
fn check(name: &str, screen: &Screen, committed: &str) {
    let found = drawn(screen, 120, 32);
    if found != committed {
        let beside = std::env::temp_dir().join(format!("bloodraven-screen-{name}.txt"));
        std::fs::write(&beside, &found).unwrap();
        panic!("{name} looks different (now in {}):\n{found}\ncommitted:\n{committed}", beside.display());
    }
}

#[test]
fn a_healthy_group_looks_so() {
    check("healthy", &screen(), include_str!("pictures/healthy.txt"));
}

#[test]
fn a_failover_looks_so() {
    check("failing", &failing(), include_str!("pictures/failing.txt"));
}

#[test]
fn the_help_page_looks_so() {
    check("help", &Screen { help: true, ..screen() }, include_str!("pictures/help.txt"));
}

#[test]
fn no_terminal_is_too_small() {
    for (width, height) in [(1, 1), (20, 5), (60, 12), (300, 100)] {
        for screen in [Screen::default(), failing(), Screen { help: true, ..screen() }] {
            assert_eq!(drawn(&screen, width, height).lines().count(), usize::from(height));
        }
    }
}

#[test]
fn keys_become_wishes() {
    let mut screen = failing();
    let pdx = || "pdx".to_owned();
    let rows = [
        ('k', Some(Wish::Act(Act::Kill(Process::Mysqld(pdx()))))),
        ('K', Some(Wish::Act(Act::Hold(Process::Mysqld(pdx()))))),
        ('p', Some(Wish::Act(Act::Pause(Process::Mysqld(pdx()))))),
        ('c', Some(Wish::Act(Act::Isolate(End::Site(pdx()))))),
        ('s', Some(Wish::Act(Act::Kill(Process::Sidecar(pdx()))))),
        ('d', Some(Wish::Act(Act::KillPod(pdx())))),
        ('f', Some(Wish::Act(Act::Plan(pdx(), None)))),
        ('r', Some(Wish::Act(Act::Reclone(pdx())))),
        ('x', Some(Wish::Act(Act::Cut(End::Operator(0), End::Site(pdx()))))),
        ('o', Some(Wish::Act(Act::Hold(Process::Operator(0))))),
        ('h', Some(Wish::Act(Act::Heal))),
        ('l', Some(Wish::Load(false))),
        ('q', Some(Wish::Quit)),
        ('z', None),
        ('9', None),
        ('1', None),
    ];
    let press = |screen: &mut Screen, code| pressed(screen, KeyEvent::new(code, KeyModifiers::NONE));
    for (letter, wish) in rows {
        assert_eq!(press(&mut screen, KeyCode::Char(letter)), wish, "{letter}");
    }
    assert_eq!(screen.selected, 0, "9 is no site, 1 is the first");
    let resume = Wish::Act(Act::Resume(Process::Mysqld("iad".into())));
    assert_eq!(press(&mut screen, KeyCode::Char('p')), Some(resume), "a paused one goes on");
    for (code, selected) in [(KeyCode::Up, 0), (KeyCode::Down, 1), (KeyCode::Down, 2), (KeyCode::Down, 2)] {
        assert_eq!(press(&mut screen, code), None);
        assert_eq!(screen.selected, selected);
    }
    assert_eq!((press(&mut screen, KeyCode::Char('?')), screen.help), (None, true));
    assert_eq!((press(&mut screen, KeyCode::Char('?')), screen.help), (None, false));
    screen.picture.operators[0].pid = None;
    assert_eq!(press(&mut screen, KeyCode::Char('o')), Some(Wish::Act(Act::Release(Process::Operator(0)))));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(pressed(&mut screen, interrupt), Some(Wish::Quit));
}
