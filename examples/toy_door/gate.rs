//! A door of its own: requests are lines (method, host, target, user agent). It shows what a door
//! has to do: read a head, call `receive`, answer or forward, call `finish`.

use crawlgate::crawlers::Registry;
use crawlgate::internals::clock::Clock;
use crawlgate::internals::forwarding::Peer;
use crawlgate::internals::identity::Proofs;
use crawlgate::internals::judge::Logs;
use crawlgate::internals::policy::origin::OriginFile;
use crawlgate::internals::requests::{
    Connection, EndedBy, HeadFields, Next, RequestHead, RequestSettings, Requests, Sent,
};
use crawlgate::internals::sites::{KnownOrigins, SiteOptions};
use crawlgate::internals::state::StateStore;
use crawlgate::internals::upkeep::JudgeParts;
use http::{HeaderMap, HeaderName};
use std::borrow::Cow;
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

/// A request: method, host, target and user agent.
struct Line<'a>([&'a [u8]; 4]);

impl RequestHead for Line<'_> {
    fn fields(&self) -> HeadFields<'_> {
        let [method, host, target, user_agent] = self.0;
        HeadFields {
            method,
            host,
            target,
            http: "line",
            user_agent: Some(user_agent),
            ..HeadFields::default()
        }
    }
    fn values(&self, _: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]> {
        std::iter::empty()
    }
    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Owned(HeaderMap::new())
    }
}

/// Answers the requests on standard input by the policies that the first argument names. `answered`
/// gets the status of each answer.
pub fn answer_lines(logs: Logs, answered: impl Fn(u16)) -> Result<(), Box<dyn std::error::Error>> {
    let policies = Path::new(&std::env::args().nth(1).ok_or("which policies?")?).to_owned();
    let (store, remembered) = StateStore::in_memory_only();
    // A door without an origin: no robots.txt is waited for.
    let own_file = Some(Arc::new(OriginFile::new("", [])));
    let origins = KnownOrigins {
        for_every_site: own_file,
        ..KnownOrigins::default()
    };
    let proofs = Arc::new(Proofs::none(Registry::builtin()));
    let sites = SiteOptions {
        policies,
        strict: false,
        may_be_missing: false,
        origins,
        published_proof: false,
    };
    let parts = JudgeParts {
        clock: Clock::default(),
        state: (&store, &remembered),
        sites,
        new_hosts: Vec::new(),
        proofs,
        logs,
        passed: None,
    };
    let gate = parts.open()?;
    let (judge, recorder) = (gate.judge.clone(), gate.recorder.clone());
    let requests = Requests::new(
        judge,
        recorder,
        gate.clock.clone(),
        RequestSettings::default(),
    );

    let connection = Connection::from(Peer::default());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.splitn(4, ' ').map(str::as_bytes);
        let head = Line(std::array::from_fn(|_| words.next().unwrap_or_default()));
        let (ticket, next) = requests.receive(&head, &connection, requests.arrival());
        let (status, octets) = match next {
            Next::Answer(answer) => (answer.status().as_u16(), answer.body().len() as u64),
            // A door with an origin asks it here, with the fields that `ticket.forward(connection)`
            // writes.
            Next::Forward => (200, 0),
        };
        answered(status);
        ticket.finish(&Sent {
            status,
            octets,
            ended_by: EndedBy::Complete,
            ..Sent::default()
        });
    }
    Ok(())
}
