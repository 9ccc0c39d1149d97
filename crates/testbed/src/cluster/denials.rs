//! Requests that the API server refuses although they are allowed: a fault of its own, which no cut line can play.
//!
//! In: who, which verbs, which resource. Out: 403 for exactly those, until the guard is dropped. Must not: touch the rights
//! of anybody, or refuse the administrator, who is asked nothing.
//!
//! The API server's first authorizer is a webhook whose match conditions name what is to be refused; it reads them anew when
//! the file changes. The webhook itself always says no.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use snafu::{ResultExt as _, ensure};

use super::error::{Error, FileSnafu, ProgramSnafu};
use super::{Api, Cluster, network};
use crate::wait;

/// Where the webhook listens, on the loopback of the control plane.
const PORT: u16 = 9999;

/// How long the API server may take to read its file: at once when it hears of the change, else once a minute.
const RELOAD_LIMIT: Duration = Duration::from_secs(100);

/// How often the webhook looks for callers: short against what the API server waits.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a caller of the webhook may take to ask.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// The most that a question may hold: it names one user and one object.
const QUESTION_LIMIT: u64 = 1 << 20;

/// Requests to refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    user: String,
    verbs: Vec<String>,
    resource: String,
}

impl Denial {
    /// Requests of a user such as `system:serviceaccount:<namespace>:<name>`, with these verbs (`*` is all of them), for a
    /// resource by its plural name (`*` is all), with a `/` and a subresource for requests of that one alone.
    pub fn new(user: &str, verbs: &[&str], resource: &str) -> Result<Self, Error> {
        let plain = |text: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || ":.-_/*".contains(c);
            !text.is_empty() && text.chars().all(fits)
        };
        let said = "a user, at least one verb and a resource are needed, of letters, digits and :.-_/*";
        let fits = plain(user) && plain(resource) && !verbs.is_empty() && verbs.iter().all(|verb| plain(verb));
        ensure!(fits, ProgramSnafu { what: "denying requests", said });
        let verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        Ok(Self { user: user.to_owned(), verbs, resource: resource.to_owned() })
    }

    /// The condition in the API server's language. Nothing here needs quoting: see [`Denial::new`].
    fn condition(&self) -> String {
        let mut parts = vec![format!("request.user == '{}'", self.user)];
        if !self.verbs.iter().any(|verb| verb == "*") {
            let verbs = self.verbs.iter().map(|verb| format!("'{verb}'")).collect::<Vec<_>>().join(", ");
            parts.push(format!("request.resourceAttributes.verb in [{verbs}]"));
        }
        let (resource, subresource) = self.parts();
        if resource != "*" {
            parts.push(format!("request.resourceAttributes.resource == '{resource}'"));
        }
        if let Some(subresource) = subresource {
            parts.push(format!("request.resourceAttributes.subresource == '{subresource}'"));
        }
        format!("({})", parts.join(" && "))
    }

    /// The resource, and the subresource if one is named.
    fn parts(&self) -> (&str, Option<&str>) {
        self.resource.split_once('/').map_or((&self.resource, None), |(resource, below)| (resource, Some(below)))
    }

    /// A question that it refuses.
    fn example(&self) -> Value {
        let some = |word: &str, instead: &str| if word == "*" { instead.to_owned() } else { word.to_owned() };
        let verb = some(self.verbs.first().map_or("*", String::as_str), "get");
        let (resource, subresource) = self.parts();
        let attributes = json!({"verb": verb, "resource": some(resource, "pods"),
            "subresource": subresource.unwrap_or_default(), "namespace": "default"});
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": self.user, "resourceAttributes": attributes},
        })
    }
}

/// The files of the API server's authorizers, and what is refused at present.
#[derive(Debug)]
pub(super) struct Denials {
    file: PathBuf,
    webhook: PathBuf,
    now: Mutex<Vec<Denial>>,
    closed: Arc<AtomicBool>,
}

impl Denials {
    /// Writes the files for an API server that refuses nothing yet.
    pub(super) fn prepare(folder: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).context(FileSnafu { what: "make", path: folder })?;
        let new = Self {
            file: folder.join("authorization.json"),
            webhook: folder.join("denials.kubeconfig"),
            now: Mutex::default(),
            closed: Arc::default(),
        };
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "denials", "cluster": {"server": format!("http://127.0.0.1:{PORT}")}}],
            "users": [{"name": "denials", "user": {}}],
            "contexts": [{"name": "denials", "context": {"cluster": "denials", "user": "denials"}}],
            "current-context": "denials",
        });
        std::fs::write(&new.webhook, config.to_string()).context(FileSnafu { what: "write", path: &new.webhook })?;
        new.write(&[])?;
        Ok(new)
    }

    /// The file that the API server is told.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Answers the API server's questions, in the network of the control plane, until this value is dropped: the socket
    /// would keep that network alive.
    pub(super) fn serve(&self, plane: u32) -> Result<(), Error> {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, PORT));
        let listener = network::within(plane, bind).flatten();
        let listener = listener
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .context(FileSnafu { what: "listen on", path: "the control plane" })?;
        let closed = Arc::clone(&self.closed);
        let serve = move || {
            // Without an end of its own: it is told.
            let _ = wait::until_every(Duration::MAX, LOOK_EVERY, || {
                while let Ok((caller, _)) = listener.accept() {
                    // The API server asks again when it gets no answer.
                    let _ = refuse(&caller);
                }
                closed.load(Ordering::SeqCst).then_some(())
            });
        };
        let started = std::thread::Builder::new().name("denials".into()).spawn(serve);
        started.map(drop).context(FileSnafu { what: "start", path: "the webhook of denials" })
    }

    /// Replaces the file as one.
    fn write(&self, denials: &[Denial]) -> Result<(), Error> {
        let unseen = self.file.with_extension("new");
        std::fs::write(&unseen, configuration(&self.webhook, denials).to_string())
            .and_then(|()| std::fs::rename(&unseen, &self.file))
            .context(FileSnafu { what: "write", path: &self.file })
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Denial>)) -> Result<(), Error> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut now);
        self.write(&now)
    }
}

impl Drop for Denials {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// The webhook is there from the beginning: which authorizers there are cannot change while the API server runs.
fn configuration(webhook: &Path, denials: &[Denial]) -> Value {
    let conditions: Vec<String> = denials.iter().map(Denial::condition).collect();
    let expression = if conditions.is_empty() {
        "false".to_owned()
    } else {
        format!("has(request.resourceAttributes) && ({})", conditions.join(" || "))
    };
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [
            {"type": "Webhook", "name": "denials", "webhook": {
                "timeout": "3s",
                "authorizedTTL": "1s",
                "unauthorizedTTL": "1s",
                "subjectAccessReviewVersion": "v1",
                "matchConditionSubjectAccessReviewVersion": "v1",
                "failurePolicy": "Deny",
                "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": webhook},
                "matchConditions": [{"expression": expression}],
            }},
            {"type": "Node", "name": "node"},
            {"type": "RBAC", "name": "rbac"},
        ],
    })
}

/// Reads one question and says no.
fn refuse(caller: &TcpStream) -> io::Result<()> {
    caller.set_nonblocking(false)?;
    caller.set_read_timeout(Some(ASK_LIMIT))?;
    caller.set_write_timeout(Some(ASK_LIMIT))?;
    let mut reader = BufReader::new(caller.take(QUESTION_LIMIT));
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse::<u64>().unwrap_or(0).min(QUESTION_LIMIT);
        }
    }
    io::copy(&mut reader.take(length), &mut io::sink())?;
    let answer = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "status": {"allowed": false, "denied": true, "reason": "refused by the testbed"},
    });
    let text = answer.to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
    write!(&mut &*caller, "{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

/// Whether the API server refuses by the webhook's word, and not merely for want of a right.
fn is_denied(api: &Api, denial: &Denial) -> Option<bool> {
    let said = api.create(&denial.example()).ok()?;
    Some(said["status"]["denied"] == true)
}

impl Cluster {
    /// Has the API server refuse requests (403). Returns when it does.
    pub fn deny(&self, denial: Denial) -> Result<Denied<'_>, Error> {
        self.denials.change(|now| now.push(denial.clone()))?;
        let denied = Denied { cluster: self, denial, over: false };
        self.wait_for("the API server does not refuse yet", RELOAD_LIMIT, |api| {
            is_denied(api, &denied.denial)?.then_some(())
        })?;
        Ok(denied)
    }
}

/// Requests that are refused until this is dropped.
#[must_use = "the requests are allowed again when this is dropped"]
#[derive(Debug)]
pub struct Denied<'a> {
    cluster: &'a Cluster,
    denial: Denial,
    over: bool,
}

impl Denied<'_> {
    /// Allows them again; returns when the API server does.
    pub fn allow(mut self) -> Result<(), Error> {
        self.take_back()?;
        let others = self.cluster.denials.now.lock().unwrap_or_else(PoisonError::into_inner).contains(&self.denial);
        let denial = &self.denial;
        self.cluster.wait_for("the API server still refuses", RELOAD_LIMIT, |api| {
            (others || !is_denied(api, denial)?).then_some(())
        })
    }

    fn take_back(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let denial = &self.denial;
        self.cluster.denials.change(|now| {
            if let Some(place) = now.iter().position(|other| other == denial) {
                now.remove(place);
            }
        })
    }
}

impl Drop for Denied<'_> {
    fn drop(&mut self) {
        let _ = self.take_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn expression(denials: &[Denial]) -> String {
        let config = configuration(Path::new("/webhook"), denials);
        config["authorizers"][0]["webhook"]["matchConditions"][0]["expression"].as_str().unwrap().to_owned()
    }

    #[test]
    fn only_what_is_named_is_refused_and_nothing_without_a_name() {
        assert_eq!(expression(&[]), "false");
        let one = Denial::new("system:serviceaccount:a:b", &["update", "patch"], "leases").unwrap();
        let condition = "(request.user == 'system:serviceaccount:a:b' && \
            request.resourceAttributes.verb in ['update', 'patch'] && request.resourceAttributes.resource == 'leases')";
        assert_eq!(expression(std::slice::from_ref(&one)), format!("has(request.resourceAttributes) && ({condition})"));
        let below = Denial::new("who", &["*"], "groups/status").unwrap();
        let condition = "(request.user == 'who' && request.resourceAttributes.resource == 'groups' && \
            request.resourceAttributes.subresource == 'status')";
        assert!(expression(std::slice::from_ref(&below)).ends_with(&format!("({condition})")));
        assert_eq!(below.example()["spec"]["resourceAttributes"]["subresource"], "status");
        let all = Denial::new("who", &["*"], "*").unwrap();
        assert!(expression(&[one, all]).ends_with(" || (request.user == 'who'))"));
    }

    #[test]
    fn what_would_need_quoting_is_refused() {
        let check = |user: &str, verbs: &[&str], resource: &str| {
            assert!(Denial::new(user, verbs, resource).is_err(), "{user} {verbs:?} {resource}");
        };
        check("a' || true || '", &["get"], "pods");
        check("a", &[], "pods");
        check("a", &["g'et"], "pods");
        check("a", &["get"], "");
    }

    #[test]
    fn the_file_changes_as_one_and_the_webhook_says_no() {
        let folder = Folder::new();
        let denials = Denials::prepare(folder.path()).unwrap();
        let read = || serde_json::from_slice::<Value>(&std::fs::read(denials.file()).unwrap()).unwrap();
        assert_eq!(read()["authorizers"][1]["type"], "Node");
        denials.change(|now| now.push(Denial::new("who", &["get"], "pods").unwrap())).unwrap();
        assert!(read().to_string().contains("request.user == 'who'"));

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut caller = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        caller.write_all(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        let (here, _) = listener.accept().unwrap();
        refuse(&here).unwrap();
        drop(here);
        let mut said = String::new();
        caller.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 OK") && said.contains("\"denied\":true"), "{said}");
    }
}
