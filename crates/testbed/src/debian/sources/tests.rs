//! The forms of a machine's sources, as data. The addresses are examples that lead nowhere.

use super::*;

const DEBIAN: &str = "ID=debian\nVERSION_CODENAME=bookworm\n";

/// The line that the private apt gets from a machine's sources in one of the two forms.
fn check(parse: fn(&str) -> Vec<Source>, text: &str, expect: Option<&str>) {
    let line = choose(&parse(text), codename(DEBIAN).as_deref())
        .map(|archive| archive.source_line("sid", Path::new("/own/key.asc")));
    assert_eq!(line.as_deref(), expect.map(|line| format!("{line}\n")).as_deref(), "{text}");
}

#[test]
fn one_line_sources_give_the_archive_of_the_release() {
    let plain = Some("deb [target=Packages] http://deb.example/debian sid main");
    let signed = Some("deb [target=Packages signed-by=/k.gpg] http://deb.example/debian sid main");
    let rows = [
        ("deb http://deb.example/debian bookworm main", plain),
        ("deb\thttp://deb.example/debian\tbookworm\tmain contrib # the archive", plain),
        ("deb [signed-by=/k.gpg] http://deb.example/debian bookworm main", signed),
        ("deb [ arch=amd64 signed-by=/k.gpg ] http://deb.example/debian bookworm main", signed),
        ("deb [signed-by=/k.gpg]http://deb.example/debian bookworm main", signed),
        (
            "deb [trusted=yes] http://deb.example/debian bookworm main",
            Some("deb [target=Packages trusted=yes] http://deb.example/debian sid main"),
        ),
        (
            "deb-src http://src.example/debian bookworm main\n# deb http://old.example/debian bookworm main\n\
             deb http://sec.example/security bookworm-security main\ndeb http://deb.example/debian bookworm main",
            plain,
        ),
        ("deb cdrom:[disc]/ bookworm main\ndeb http://deb.example/debian bookworm main", plain),
        ("deb http://other.example/tool stable tool\ndeb http://deb.example/debian bookworm main", plain),
        ("deb http://deb.example/debian unstable main", plain),
        ("deb http://other.example/tool bookworm tool", None),
        ("deb http://deb.example/debian", None),
        ("deb [signed-by=/k.gpg http://deb.example/debian bookworm main", None),
        ("", None),
    ];
    for (text, expect) in rows {
        check(one_line, text, expect);
    }
}

#[test]
fn deb822_sources_give_the_archive_of_the_release() {
    let plain = Some("deb [target=Packages] http://deb.example/debian sid main");
    let rows = [
        ("Types: deb\nURIs: http://deb.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n", plain),
        (
            "# a comment\n\nTypes: deb\n# within\nURIs: http://deb.example/debian\nSuites: bookworm\nComponents: main\n\
             Signed-By: /k.gpg\n",
            Some("deb [target=Packages signed-by=/k.gpg] http://deb.example/debian sid main"),
        ),
        (
            "types: deb-src deb\nuris:\n http://deb.example/debian\nsuites: bookworm\ncomponents:\n contrib\n main",
            plain,
        ),
        (
            "Types: deb\nURIs: http://sec.example/s\nSuites: bookworm-security\nComponents: main\n\n\
             Types: deb\nURIs: http://deb.example/debian\nSuites: bookworm\nComponents: main\n",
            plain,
        ),
        (
            "Types: deb\nURIs: http://off.example/debian\nSuites: bookworm\nComponents: main\nEnabled: no\n \n\
             Types: deb\nURIs: http://deb.example/debian\nSuites: bookworm\nComponents: main\nEnabled: yes\n",
            plain,
        ),
        (
            "Types: deb\nURIs: http://deb.example/debian\nSuites: bookworm\nComponents: main\nSigned-By:\n /a.gpg\n /b.gpg\n",
            Some("deb [target=Packages signed-by=/a.gpg,/b.gpg] http://deb.example/debian sid main"),
        ),
        (
            "Types: deb\nURIs: http://deb.example/debian\nSuites: bookworm\nComponents: main\nTrusted: yes\n",
            Some("deb [target=Packages trusted=yes] http://deb.example/debian sid main"),
        ),
        ("Types: deb-src\nURIs: http://deb.example/debian\nSuites: bookworm\nComponents: main\n", None),
        ("Types: deb\nSuites: bookworm\nComponents: main\n", None),
        ("nonsense", None),
        ("", None),
    ];
    for (text, expect) in rows {
        check(deb822, text, expect);
    }
}

#[test]
fn a_key_that_stands_in_the_entry_is_written_out() {
    let text = "Types: deb\nURIs: http://deb.example/debian\nSuites: bookworm\nComponents: main\nSigned-By:\n \
                -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n -----END PGP PUBLIC KEY BLOCK-----\n";
    check(deb822, text, Some("deb [target=Packages signed-by=/own/key.asc] http://deb.example/debian sid main"));
    let archive = choose(&deb822(text), Some("bookworm")).unwrap();
    let key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQINBF\n-----END PGP PUBLIC KEY BLOCK-----\n";
    assert_eq!(archive.embedded_key(), Some(key));
}

#[test]
fn only_debian_has_a_code_name_here() {
    let check = |text: &str, expect: Option<&str>| assert_eq!(codename(text).as_deref(), expect, "{text}");
    check(DEBIAN, Some("bookworm"));
    check("VERSION_CODENAME=\"forky\"\nID='debian'\nID_LIKE=x\n", Some("forky"));
    check("ID=ubuntu\nVERSION_CODENAME=noble\nID_LIKE=debian\n", None);
    check("ID=debian\n", None);
    check("", None);
}

#[test]
fn a_machine_without_a_debian_archive_says_so() {
    assert_eq!(choose(&one_line("deb http://deb.example/debian bookworm main"), None), None);
    let error = NoArchiveSnafu { wanted: "bookworm" }.build().to_string();
    assert!(error.contains("bookworm") && error.contains("/etc/apt/sources.list"), "{error}");
}
