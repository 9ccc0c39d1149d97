//! Words between the leader and a site's sidecar, over HTTP, signed both ways.
//!
//! In: a view to be pushed, a grant, an order, or the wish to know who is there. Out: the sidecar's acknowledgement with those that it
//! hands on. Must not: take more than 2 s, read more than an envelope can hold, or believe what is not signed under the
//! nonce that was sent.
//!
//! | what | request | answer |
//! |---|---|---|
//! | push | `POST /authority`, a view | 200 with an acknowledgement |
//! | grant | `POST /authority`, a grant under the question's nonce | 200 with an acknowledgement |
//! | probe | `GET /authority?groupUid=…`, signed as a request | 200 with an acknowledgement |
//! | empty | `POST /empty`, an order | 200 with an acknowledgement, or 409 with the reason |

use crate::world::HostPort;
use bloodraven_brain::message::{Grant, QuestionId};
use bloodraven_brain::name::Site;
use bloodraven_brain::record::View;
use bloodraven_brain::time::Wall;
use bloodraven_names::Names;
use bloodraven_wire::query::{self, Purpose};
use bloodraven_wire::{
    AckMessage, EmptyMessage, Envelope, GrantMessage, GroupUid, Keys, MAX_ENVELOPE_BYTES, Nonce, ViewMessage,
};
use snafu::{OptionExt, ResultExt, Snafu, ensure};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A whole exchange, connecting included.
pub(super) const BOUND: Duration = Duration::from_secs(2);

const PATH: &str = "/authority";

/// How long an answer of the resolver is good: a site's Service keeps its address for as long as it lives.
const NAMES_ARE_GOOD_FOR: Duration = Duration::from_secs(30);

/// More than the sites of all groups of a cluster.
const MOST_NAMES: usize = 65_536;

/// What is said to a sidecar.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// The record, to be stored.
    Push(Box<View>),
    /// The answer to a question that rode on an acknowledgement.
    Grant(Box<Grant>, Nonce),
    /// Who is there?
    Probe,
    /// Empty the data folder.
    Empty(Box<EmptyMessage>),
}

/// Whom it is said to, and with what.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) client: reqwest::Client,
    pub(super) site: Site,
    pub(super) at: HostPort,
    pub(super) group: GroupUid,
    pub(super) keys: Keys,
    /// Our name for a question that may ride on the answer.
    pub(super) id: QuestionId,
    /// When what we say was read.
    pub(super) observed: Wall,
}

/// Why there is no acknowledgement.
#[derive(Debug, Snafu)]
pub(super) enum Unheard {
    #[snafu(display("no answer within 2 s"))]
    Late,
    #[snafu(display("no randomness: {because}"))]
    Random { because: String },
    #[snafu(display("{source}"))]
    Http { source: reqwest::Error },
    #[snafu(display("answered with status {status}"))]
    Status { status: u16 },
    #[snafu(display("refused: {why}"))]
    Refused { why: String },
    #[snafu(display("the answer is longer than {MAX_ENVELOPE_BYTES} bytes"))]
    TooLarge,
    #[snafu(display("{source}"))]
    Wire { source: bloodraven_wire::Error },
    #[snafu(display("{found} answers at the address of {expected}"))]
    AnotherSite { expected: Site, found: Site },
}

/// One exchange.
pub(super) async fn say(line: &Line, said: &Said) -> Result<AckMessage, Unheard> {
    timeout(BOUND, exchange(line, said)).await.ok().context(LateSnafu)?
}

async fn exchange(line: &Line, said: &Said) -> Result<AckMessage, Unheard> {
    let Line { client, site, at, group, keys, id, observed } = line;
    let observed_at = observed.to_string();
    let (request, nonce) = match said {
        Said::Push(view) => {
            let nonce = fresh_nonce()?;
            let message = ViewMessage { group: group.clone(), view: View::clone(view), observed_at };
            (post(client, at, PATH, &message.seal(keys, nonce).context(WireSnafu)?), nonce)
        }
        Said::Grant(grant, nonce) => {
            let reason = reason(grant).to_owned();
            let message = GrantMessage { group: group.clone(), grant: Grant::clone(grant), observed_at, reason };
            (post(client, at, PATH, &message.seal(keys, *nonce).context(WireSnafu)?), *nonce)
        }
        Said::Probe => {
            let nonce = fresh_nonce()?;
            let who = [("groupUid", group.as_str())];
            let target = query::sign(keys, Purpose::Other, PATH, &who, nonce).context(WireSnafu)?;
            (client.get(format!("http://{at}{target}")), nonce)
        }
        Said::Empty(order) => {
            let nonce = fresh_nonce()?;
            (post(client, at, "/empty", &order.seal(keys, nonce).context(WireSnafu)?), nonce)
        }
    };
    let response = request.send().await.context(HttpSnafu)?;
    if response.status().as_u16() == 409 && matches!(said, Said::Empty(_)) {
        return RefusedSnafu { why: reason_told(&read(response).await?) }.fail();
    }
    ensure!(response.status().as_u16() == 200, StatusSnafu { status: response.status().as_u16() });
    let body = read(response).await?;
    let verified = Envelope::read(&body).and_then(|envelope| envelope.open_answer(keys, nonce)).context(WireSnafu)?;
    let message = AckMessage::open(&verified, group, *id).context(WireSnafu)?;
    let found = &message.ack.from.site;
    ensure!(found == site, AnotherSiteSnafu { expected: site.clone(), found: found.clone() });
    Ok(message)
}

/// Why a grant says "open", or does not.
pub(crate) const fn reason(grant: &Grant) -> &'static str {
    match grant.open {
        Some(_) => "it has authority and may open",
        None => "it has authority",
    }
}

/// For people: nobody signed it, and nothing follows from it.
fn reason_told(body: &[u8]) -> String {
    let told: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let why = told.as_ref().and_then(|told| told.get("error")?.as_str()).unwrap_or("it says not why");
    why.chars().take(200).collect()
}

fn post(client: &reqwest::Client, at: &HostPort, path: &str, envelope: &Envelope) -> reqwest::RequestBuilder {
    client.post(format!("http://{at}{path}")).header("content-type", "application/json").body(envelope.to_string())
}

/// Never more than an envelope can hold, whatever the length was said to be.
async fn read(mut response: reqwest::Response) -> Result<Vec<u8>, Unheard> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.context(HttpSnafu)? {
        ensure!(body.len() + chunk.len() <= MAX_ENVELOPE_BYTES, TooLargeSnafu);
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn fresh_nonce() -> Result<Nonce, Unheard> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Unheard::Random { because: error.to_string() })?;
    Ok(Nonce::new(bytes))
}

/// The client towards all sidecars: connections are kept and used again, nothing is followed elsewhere.
pub(crate) fn client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(BOUND)
        .timeout(BOUND)
        // One that stands since before a cut is found dead once, not twice.
        .pool_max_idle_per_host(1)
        // What is said in a move follows at once, or half a second later. At rest a word goes every few seconds, and a
        // thousand groups would keep three thousand connections, each with its buffers, in between.
        .pool_idle_timeout(Duration::from_millis(600))
        .dns_resolver(Arc::new(Names::new(NAMES_ARE_GOOD_FOR, MOST_NAMES)))
        .http1_only()
        .build()
}
