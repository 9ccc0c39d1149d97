//! Lines, as they are written.

use super::*;
use std::io::Write;
use std::sync::Mutex;
use tracing_subscriber::Registry;

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("paper").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The lines that `speak` says, at 2026-11-15T03:12:25.5Z.
fn lines(level: Level, speak: impl FnOnce()) -> Vec<String> {
    let paper = Paper::default();
    let (pipe, guard) = Pipe::into(paper.clone()).expect("a pipe");
    let clock: Clock = Arc::new(|| "2026-11-15T03:12:25.5Z".parse().expect("a time"));
    let layer = JsonLayer::new(Component::Sidecar, clock, pipe).with_filter(filter(level));
    tracing::subscriber::with_default(Registry::default().with(layer), speak);
    drop(guard);
    let bytes = paper.0.lock().expect("paper").clone();
    String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn a_line_has_the_fields_of_the_contract_in_order() {
    let said = lines(Level::Info, || {
        Line::of(LogEvent::StateTransition)
            .text(Field::Fg, "shop/orders")
            .text(Field::Site, "pdx")
            .text(Field::From, "writable")
            .text(Field::To, "unreachable")
            .number(Field::Epoch, 7)
            .emit();
    });
    assert_eq!(
        said,
        [concat!(
            r#"{"time":"2026-11-15T03:12:25.500000000Z","level":"info","msg":"state transition","#,
            r#""event":"StateTransition","fg":"shop/orders","component":"sidecar","epoch":7,"#,
            r#""from":"writable","site":"pdx","to":"unreachable"}"#
        )]
    );
}

#[test]
fn spans_are_inherited_names_are_camel_case_and_the_event_wins() {
    let said = lines(Level::Debug, || {
        let span = tracing::info_span!("group", fg = "shop/orders", epoch = 3_u64, site = "iad");
        let _within = span.enter();
        tracing::debug!(old_primary = "iad", duration_ms = 5_u64, site = %"pdx", ok = true, "hello \"you\"");
    });
    let tail = concat!(
        r#""level":"debug","msg":"hello \"you\"","fg":"shop/orders","component":"sidecar","epoch":3,"#,
        r#""site":"pdx","oldPrimary":"iad","durationMs":5,"ok":true}"#
    );
    assert_eq!(said.len(), 1);
    assert!(said[0].ends_with(tail), "{}", said[0]);
}

#[test]
fn levels_are_kept_and_others_are_heard_from_warn_up() {
    let said = lines(Level::Info, || {
        tracing::debug!(target: "bloodraven_x", "no");
        tracing::info!(target: "bloodraven_x", "yes");
        tracing::info!(target: "hyper", "no");
        tracing::warn!(target: "hyper", body = "anything", "broken");
        for level in Level::ALL {
            Line::prose(*level, "prose").emit();
        }
    });
    let messages: Vec<(String, String)> = said
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|line| {
            (line["level"].as_str().unwrap_or_default().to_owned(), line["msg"].as_str().unwrap_or_default().to_owned())
        })
        .collect();
    let expected =
        [("info", "yes"), ("warn", "hyper: broken"), ("info", "prose"), ("warn", "prose"), ("error", "prose")];
    assert_eq!(messages, expected.map(|(level, msg)| (level.to_owned(), msg.to_owned())));
    assert!(said.iter().all(|line| !line.contains("anything")), "fields of others stay out");
}

/// K-20: fields of a line.
#[test]
fn secrets_do_not_get_in() {
    let said = lines(Level::Info, || {
        tracing::info!(password = "hunter2", source_password = "hunter2", "ALTER USER 'a' IDENTIFIED BY 'hunter2'");
        Line::prose(Level::Error, "cannot reach mysql://op:hunter2@iad:3306/")
            .text(Field::Error, "SOURCE_PASSWORD = 'hunter2'")
            .emit();
        tracing::warn!(target: "mysql_async", query = "SET PASSWORD = 'hunter2'", "SET PASSWORD = 'hunter2' failed");
    });
    assert_eq!(said.len(), 3);
    assert!(said.iter().all(|line| !line.contains("hunter2") && line.contains("(hidden)")), "{said:#?}");
}

#[test]
fn a_long_text_is_cut_and_stays_text() {
    let said = lines(Level::Info, || Line::prose(Level::Info, "ä".repeat(100_000)).emit());
    assert!(said[0].len() < 20_000 && said[0].contains("… (cut)"));
}

/// A writer that waits at its first word until the other end of the channel is gone.
struct Gate(Option<std::sync::mpsc::Receiver<()>>, Paper);

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(gate) = self.0.take() {
            let _ = gate.recv();
        }
        self.1.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn whoever_speaks_never_waits_and_what_was_dropped_is_counted() {
    let paper = Paper::default();
    let (opener, gate) = std::sync::mpsc::channel();
    let (pipe, guard) = Pipe::into(Gate(Some(gate), paper.clone())).expect("a pipe");
    let sent = pipe::MOST_WAITING * 2;
    // The writer stands still; were one of these to wait, the test would not end.
    for _ in 0..sent {
        pipe.send("{}\n".to_owned());
    }
    drop(opener);
    drop(guard);
    let text = String::from_utf8(paper.0.lock().expect("paper").clone()).expect("text");
    let dropped: usize = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()?.get("count")?.as_u64())
        .filter_map(|count| usize::try_from(count).ok())
        .sum();
    let written = text.lines().filter(|line| *line == "{}").count();
    assert!(dropped > 0 && written + dropped == sent, "{written} and {dropped} of {sent}");
}

#[test]
fn every_event_is_declared_as_the_house_wants() {
    let mut names = std::collections::BTreeSet::new();
    for event in LogEvent::ALL {
        let spec = event.spec();
        assert!(names.insert(spec.event), "{}", spec.event);
        assert!(!spec.messages.is_empty() && spec.messages.iter().all(|message| !message.is_empty()), "{}", spec.event);
    }
    let fields: std::collections::BTreeSet<&str> = Field::ALL.iter().map(|field| field.as_str()).collect();
    assert_eq!(fields.len(), Field::ALL.len());
    assert!(fields.iter().all(|name| !hide::is_secret(name)));
}
