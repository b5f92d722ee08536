//! An entry point: requests are lines (method, host, target, user agent). It shows what an entry point does: it
//! reads a head, calls `receive`, answers or forwards, and calls `finish`.

use crawlgate::crawlers::Registry;
use crawlgate::internals::clock::Clock;
use crawlgate::internals::forwarding::ConnectionPeer;
use crawlgate::internals::identity::IdentityVerifier;
use crawlgate::internals::judge::RequestLogs;
use crawlgate::internals::policy::origin::OriginRobotsTxt;
use crawlgate::internals::requests::{
    ConnectionFacts, HeadFields, RequestHead, RequestPipeline, RequestSettings, ResponseEnd,
    ResponseOutcome,
};
use crawlgate::internals::sites::{InitialOriginRobots, SiteLoadOptions};
use crawlgate::internals::state::StateStore;
use crawlgate::internals::upkeep::InstanceInputs;
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
pub fn answer_lines(
    logs: RequestLogs,
    answered: impl Fn(u16),
) -> Result<(), Box<dyn std::error::Error>> {
    let policies = Path::new(&std::env::args().nth(1).ok_or("give a policy directory")?).to_owned();
    let (store, remembered) = StateStore::in_memory_only();
    // An entry point without an origin: nothing waits for an origin's robots.txt.
    let own_file = Some(Arc::new(OriginRobotsTxt::new("", [])));
    let origins = InitialOriginRobots {
        for_every_site: own_file,
        ..InitialOriginRobots::default()
    };
    let proofs = Arc::new(IdentityVerifier::with_policy_networks_only(
        Registry::builtin(),
    ));
    let sites = SiteLoadOptions {
        policies,
        origins,
        ..SiteLoadOptions::default()
    };
    let clock = Clock::default();
    let parts = InstanceInputs {
        started: clock.moment(),
        clock,
        store: &store,
        restored: &remembered,
        sites,
        new_hosts: Vec::new(),
        proofs,
        logs,
    };
    let gate = parts.open()?;
    let (judge, recorder) = (gate.judge.clone(), gate.recorder.clone());
    let requests = RequestPipeline::new(
        judge,
        recorder,
        gate.clock.clone(),
        RequestSettings::default(),
    );

    let connection = ConnectionFacts::cleartext(ConnectionPeer::default());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.splitn(4, ' ').map(str::as_bytes);
        let head = Line(std::array::from_fn(|_| words.next().unwrap_or_default()));
        let (ticket, answer) = requests.receive(&head, &connection, requests.arrival_now());
        let (status, bytes) = match answer {
            Some(answer) => (answer.status().as_u16(), answer.body().len() as u64),
            // An entry point with an origin asks it here, with the fields that `ticket.forward(connection)`
            // writes.
            None => (200, 0),
        };
        answered(status);
        ticket.finish(&ResponseOutcome {
            status,
            bytes,
            ended_by: ResponseEnd::Complete,
            ..ResponseOutcome::default()
        });
    }
    Ok(())
}
