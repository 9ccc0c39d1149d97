//! The binary as people and scripts use it: words and standard input go in, text and an exit code come out.
//!
//! In the tables `A` and `B` stand for two UUIDs, so that a row fits a line.

#![expect(clippy::expect_used, reason = "the checks fail the test that calls them")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const A: &str = "0a11fa47-71ca-11e1-9e33-c80aa9429562";
const B: &str = "b9c1d51f-2f5a-11ef-8d5e-0242ac120002";

/// How a run ended.
#[derive(Debug, PartialEq)]
struct Ending {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the binary in a folder of its own, with `A` and `B` written out in the words and in standard input.
fn run(words: &[&str], stdin: &[u8], folder: &Path) -> Ending {
    let long = |word: &str| word.replace('A', A).replace('B', B);
    let mut child = Command::new(env!("CARGO_BIN_EXE_bloodraven"))
        .args(words.iter().map(|word| long(word)))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A run that needs no standard input may be over before it is written.
    _ = child.stdin.take().expect("a pipe").write_all(stdin);
    let output = child.wait_with_output().expect("the binary ends");
    let short = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(A, "A").replace(B, "B");
    Ending { code: output.status.code(), stdout: short(&output.stdout), stderr: short(&output.stderr) }
}

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Succeeds, with this on standard output and nothing on standard error.
#[track_caller]
fn prints(words: &[&str], stdin: &str, expect: &str) {
    let stdin = stdin.replace('A', A).replace('B', B);
    let ending = run(words, stdin.as_bytes(), Path::new("."));
    let expect = Ending { code: Some(0), stdout: expect.to_owned(), stderr: String::new() };
    assert_eq!(ending, expect, "{words:?}");
}

/// Exits with 2, with this on standard error and nothing on standard output.
#[track_caller]
fn refuses(words: &[&str], stdin: &[u8], expect: &str) {
    let ending = run(words, stdin, Path::new("."));
    let expect = Ending { code: Some(2), stdout: String::new(), stderr: expect.to_owned() };
    assert_eq!(ending, expect, "{words:?}");
}

#[test]
fn contains_answers_in_words_and_with_the_exit_code() {
    let check = |set: &str, other: &str, code: i32, answer: &str| {
        let ending = run(&["gtid", "contains", set, other], b"", Path::new("."));
        let expect = Ending { code: Some(code), stdout: answer.to_owned(), stderr: String::new() };
        assert_eq!(ending, expect, "{set} contains {other}");
    };
    check("A:1-5", "A:2-3", 0, "yes\n");
    check("A:1-5", "A:1-5", 0, "yes\n");
    check("A:1-5", "", 0, "yes\n");
    check("A:1-5", "A:2-6", 1, "no\n");
    check("A:1-5", "A:t:2", 1, "no\n");
    check("", "A:1", 1, "no\n");
}

#[test]
fn sets_are_combined_and_printed_as_the_server_does() {
    prints(&["gtid", "subtract", "A:1-9,B:1", "A:2-3"], "", "A:1:4-9,\nB:1\n");
    prints(&["gtid", "subtract", "A:1-9", "A:2-3", "A:8-20"], "", "A:1:4-7\n");
    prints(&["gtid", "subtract", "A:1", "A:1"], "", "\n");
    prints(&["gtid", "union", "A:1", "B:1", "A:2:t:1"], "", "A:1-2:t:1,\nB:1\n");
    prints(&["gtid", "union", "--one-line", "B:1", "A:1"], "", "A:1,B:1\n");
    prints(&["gtid", "intersect", "A:1-9", "A:2-20:t:1", "A:3-4"], "", "A:3-4\n");
    prints(&["gtid", "count", "A:1-9:t:1,B:1"], "", "11\n");
    prints(&["gtid", "count", "--by-server", "A:1-9:t:1,B:1"], "", "A 10\nB 1\n");
    prints(&["gtid", "count", ""], "", "0\n");
    prints(&["gtid", "normalize", " B : 2-3 ,, A:T:1:2,B:1"], "", "A:t:1-2,\nB:1-3\n");
    prints(&["gtid", "normalize", "B:1,A:1", "--one-line"], "", "A:1,B:1\n");
    prints(&["gtid", "count", "A:1-9223372036854775806,B:1-9223372036854775806"], "", "18446744073709551612\n");
}

#[test]
fn a_set_comes_from_standard_input_or_a_file() {
    prints(&["gtid", "normalize", "-"], "B:1,\nA:1\n", "A:1,\nB:1\n");
    prints(&["gtid", "subtract", "-", "A:1"], "A:1-3", "A:2-3\n");
    prints(&["gtid", "subtract", "A:1-3", "-"], "A:1\n", "A:2-3\n");
    prints(&["gtid", "count", "-"], "", "0\n");

    let folder = folder("a_set_comes_from_standard_input_or_a_file");
    std::fs::write(folder.join("one.txt"), format!("{A}:1-9,\n{B}:1\n")).expect("a file");
    let ending = run(&["gtid", "subtract", "@one.txt", "-"], format!("{A}:1-5").as_bytes(), &folder);
    assert_eq!(ending, Ending { code: Some(0), stdout: "A:6-9,\nB:1\n".to_owned(), stderr: String::new() });
}

#[test]
fn a_malformed_set_is_shown_with_a_caret() {
    let under = |width: usize| " ".repeat(width);
    let expect = "error: set 2 is not a GTID set: expected ':', ',' or the end, found ';' at byte 40\n  A:1-5;7\n  ";
    refuses(&["gtid", "contains", "A:1", "A:1-5;7"], b"", &format!("{expect}{}^\n", under(40)));

    let expect = "error: standard input is not a GTID set: number out of range (1 to 9223372036854775806) at byte 42 (line 3, column 38)";
    let stdin = format!(",\n,,\n{A}:0,\n{B}:1\n");
    refuses(&["gtid", "count", "-"], stdin.as_bytes(), &format!("{expect}\n  A:0,\n  {}^\n", under(37)));

    // The line break at the end of a file is not where the mistake is.
    let expect = "error: standard input is not a GTID set: expected a number or a tag, found the end at byte 37";
    refuses(&["gtid", "count", "-"], format!("{A}:\n").as_bytes(), &format!("{expect}\n  A:\n  {}^\n", under(37)));

    let folder = folder("a_malformed_set_is_shown_with_a_caret");
    std::fs::write(folder.join("bad.txt"), "x").expect("a file");
    let ending = run(&["gtid", "union", "A:1", "@bad.txt"], b"", &folder);
    let expect =
        "error: bad.txt is not a GTID set: expected a hexadecimal digit of a UUID, found 'x' at byte 0\n  x\n  ^\n";
    assert_eq!(ending, Ending { code: Some(2), stdout: String::new(), stderr: expect.to_owned() });
}

#[test]
fn what_cannot_be_read_is_named() {
    refuses(
        &["gtid", "count", "@missing.txt"],
        b"",
        "error: cannot read missing.txt: No such file or directory (os error 2)\n",
    );
    refuses(&["gtid", "count", "@/"], b"", "error: cannot read /: Is a directory (os error 21)\n");
    refuses(&["gtid", "count", "-"], b"\xffabc", "error: standard input is not text: byte 0 is not valid UTF-8\n");
    let twice = "error: standard input can be read only once: put one of the sets into a file and name it as @FILE\n";
    refuses(&["gtid", "contains", "-", "-"], b"", twice);
    refuses(&["gtid", "union", "-", "A:1", "-"], b"", twice);
    let endless = "error: /dev/zero is too long for a GTID set: more than 16777216 bytes\n";
    refuses(&["gtid", "count", "@/dev/zero"], b"", endless);
}

/// K-26: unknown arguments end with 2.
#[test]
fn what_is_not_understood_is_answered_with_one_line() {
    let check = |words: &[&str], expect: &str| refuses(words, b"", &format!("error: {expect}\n"));
    check(&["frobnicate"], "unrecognized subcommand 'frobnicate'; see 'bloodraven --help'");
    check(&["gtdi"], "unrecognized subcommand 'gtdi' (did you mean 'gtid'?); see 'bloodraven --help'");
    check(&["--frobnicate"], "unexpected argument '--frobnicate' found; see 'bloodraven --help'");
    check(
        &["gtid", "contians"],
        "unrecognized subcommand 'contians' (did you mean 'contains'?); see 'bloodraven gtid --help'",
    );
    check(
        &["gtid", "contains", "A:1"],
        "the following required arguments were not provided: <OTHER>; see 'bloodraven gtid contains --help'",
    );
    check(&["gtid", "count", "A:1", "B:1"], "unexpected argument 'B:1' found; see 'bloodraven gtid count --help'");
    check(
        &["gtid", "union", "--one-lime", "A:1"],
        "unexpected argument '--one-lime' found (did you mean '--one-line'?); see 'bloodraven gtid union --help'",
    );
}

/// K-26: a word that nobody knows starts nothing, whatever stands before it.
#[test]
fn no_subcommand_starts_with_a_word_that_it_does_not_know() {
    let wrong = ["--frobnicate", "--leader-elekt=true", "frobnicate"];
    for subcommand in ["crds", "gtid", "init", "install", "local", "operator", "playground", "sidecar", "simulate"] {
        for word in wrong {
            let ending = run(&[subcommand, word], b"", Path::new("."));
            let said =
                ending.stderr.lines().count() == 1 && ending.stderr.contains(word.split('=').next().expect("a word"));
            assert!(ending.code == Some(2) && said && ending.stdout.is_empty(), "{subcommand} {word}: {ending:?}");
        }
    }
}

/// K-12: times of the election that are zero or inverted end the start, with the flags that they are written in.
#[test]
fn times_of_the_election_that_do_not_go_together_end_the_start() {
    let folder = folder("times_of_the_election_that_do_not_go_together_end_the_start");
    let cluster = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\nusers: [{name: u, user: {}}]\n";
    std::fs::write(folder.join("kubeconfig"), cluster).expect("a file");
    for times in
        [["15s", "15s", "2s"], ["10s", "15s", "2s"], ["15s", "10s", "12s"], ["0s", "0s", "0s"], ["15s", "10s", "0s"]]
    {
        let flags = ["--lease-duration", "--renew-deadline", "--retry-period"].iter().zip(times);
        let output = Command::new(env!("CARGO_BIN_EXE_bloodraven"))
            .args(["operator", "--metrics-bind=127.0.0.1:0", "--probe-bind=127.0.0.1:0", "--aux-bind=127.0.0.1:0"])
            .args(flags.flat_map(|(flag, time)| [*flag, time]))
            .env("KUBECONFIG", folder.join("kubeconfig"))
            .envs([("POD_NAME", "a"), ("POD_NAMESPACE", "b"), ("POD_UID", "c")])
            .output()
            .expect("the binary ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{times:?}: {said}");
        assert!(said.contains("--lease-duration, --renew-deadline and --retry-period"), "{times:?}: {said}");
    }
}

#[test]
fn crds_are_printed_as_one_stream_of_documents() {
    let ending = run(&["crds"], b"", Path::new("."));
    assert_eq!((ending.code, ending.stderr.as_str()), (Some(0), ""));
    let documents: Vec<&str> = ending.stdout.split("\n---\n").collect();
    for kind in ["MysqlFailoverGroup", "MysqlBackup", "MysqlBackupVerification"] {
        let names_it = |document: &&&str| document.lines().any(|line| line.trim() == format!("kind: {kind}"));
        assert_eq!(documents.iter().filter(names_it).count(), 1, "{kind} in {} documents", documents.len());
    }
    assert_eq!(documents.len(), 3);
    assert!(documents.iter().all(|document| document.contains("kind: CustomResourceDefinition")));
    refuses(&["crds", "now"], b"", "error: unexpected argument 'now' found; see 'bloodraven crds --help'\n");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let script = format!("set -o pipefail; {} crds | head -n 1 > /dev/null", env!("CARGO_BIN_EXE_bloodraven"));
    let output = Command::new("bash").args(["-c", &script]).output().expect("a shell");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), [].as_slice()));
}

#[test]
fn help_and_version_are_there() {
    prints(&["--version"], "", concat!("bloodraven ", env!("CARGO_PKG_VERSION"), "\n"));
    for (words, expect) in [
        (["--help"].as_slice(), "Usage: bloodraven <COMMAND>"),
        (&["gtid", "--help"], "What would be lost if the replica took over?"),
        (&["gtid", "contains", "--help"], "exits with 0 for yes and 1 for no"),
        (&["help", "gtid", "subtract"], "Usage: bloodraven gtid subtract [OPTIONS] <SET> <OTHERS>..."),
    ] {
        let ending = run(words, b"", Path::new("."));
        assert_eq!((ending.code, ending.stderr.as_str()), (Some(0), ""), "{words:?}");
        assert!(ending.stdout.contains(expect), "{words:?} printed {}", ending.stdout);
    }
    // Without any word there is no telling what is wanted: help, but as an error.
    let ending = run(&[], b"", Path::new("."));
    assert_eq!((ending.code, ending.stdout.as_str()), (Some(2), ""));
    assert!(ending.stderr.contains("Usage: bloodraven <COMMAND>"), "{}", ending.stderr);
}
