//! A policy's own `tests:`, run against its compiled site.

use super::explain::{Explanation, claim_of, report};
use super::{
    Facts, Holdings, Identity, Question, Scratch,
    behaviour::{Behaviour, Claimant, identity_by_policy},
    decide::decide_for,
};
use crate::crawlers::Registry;
use crate::policy::compiled::{Former, Held};
use crate::policy::model::{HeldByTest, Policy, PolicyTest};
use crate::policy::planned_pause::planned_pause;
use crate::policy::{Site, SiteEntry, Snapshot, compile_with_origin};
use crate::time::Timestamp;
use crate::yaml::{Diagnostic, Located};
use std::borrow::Cow;
use std::sync::Arc;

/// One case that did not hold, as a finding at its place in the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFailure {
    /// What was expected and what came, at the test's place.
    pub diagnostic: Diagnostic,
}

/// Runs every case; an empty list means that all hold. What goes by the clock is as it is at the moment of the case;
/// without one, as it is before any of it began, so that a case holds tomorrow as it does today.
pub fn run_tests(site: &Arc<Site>, registry: &Registry) -> Vec<TestFailure> {
    let snapshot = alone(site);
    site.policy
        .tests
        .iter()
        .flat_map(|test| run(test, &at_its_moment(test, &snapshot, site, registry), registry))
        .collect()
}

fn at_its_moment<'a>(
    test: &PolicyTest,
    snapshot: &'a Snapshot,
    site: &Arc<Site>,
    registry: &Registry,
) -> Cow<'a, Snapshot> {
    let at = test.at.unwrap_or(Timestamp(i64::MIN));
    if site.policy.next_switch(at) == site.next_switch {
        return Cow::Borrowed(snapshot);
    }
    match compile_with_origin(site.policy.clone(), &site.origin_known(), registry, at) {
        Ok(then) => Cow::Owned(alone(&Arc::new(then))),
        // Loading says so at the end of the plan.
        Err(_) => Cow::Borrowed(snapshot),
    }
}

/// What a case asks, answered: for `check` and for those who compare it with the running proxy.
pub fn ask(test: &PolicyTest, site: &Arc<Site>, registry: &Registry) -> Explanation {
    answer(test, &at_its_moment(test, &alone(site), site, registry), registry)
}

/// The host that a case asks for: its own, else the site's first, else any.
pub fn host_of(test: &PolicyTest, policy: &Policy) -> String {
    if let Some(host) = &test.host {
        return host.value.clone();
    }
    match policy.hosts.first().map(|host| &host.value) {
        None => "site.test".to_owned(),
        Some(host) => {
            let name = if host.name.contains(':') { format!("[{}]", host.name) } else { host.name.clone() };
            let name = if host.wildcard { format!("www.{name}") } else { name };
            host.port.map_or(name.clone(), |port| format!("{name}:{port}"))
        }
    }
}

/// The user agent that a case sends: a known crawler's example where the case gives a token or a name.
pub fn user_agent_of(test: &PolicyTest, registry: &Registry) -> String {
    let agent = &test.agent.value;
    let example = registry.find(agent).and_then(|index| registry.get(index).user_agent.clone());
    example.unwrap_or_else(|| agent.clone())
}

/// The site by itself, with its planned pause: what tests judge by.
fn alone(site: &Arc<Site>) -> Snapshot {
    // Without a beginning nobody can say when it ends; tests that give a moment are about planned pauses.
    let from = site.policy.pause.as_ref().and_then(|pause| pause.from);
    let pauses = from.and_then(|from| planned_pause(&site.policy, from)).into_iter();
    let entry = SiteEntry { pauses: pauses.collect(), ..SiteEntry::new(site.clone(), Timestamp(0)) };
    Snapshot::new(vec![entry], 0)
}

fn answer(test: &PolicyTest, snapshot: &Snapshot, registry: &Registry) -> Explanation {
    let mut without_pause = None;
    let snapshot = match test.at {
        Some(_) => snapshot,
        None => {
            let mut entry = snapshot.sites()[0].clone();
            entry.pauses.clear();
            &*without_pause.insert(Snapshot::new(vec![entry], 0))
        }
    };
    let entry = &snapshot.sites()[0];
    let host = host_of(test, &entry.site.policy);
    let mut question = Question {
        facts: Facts {
            host: host.as_bytes(),
            target: test.path.value.as_bytes(),
            method: b"GET",
            user_agent: test.agent.value.as_bytes(),
            client: test.ip,
            identity: Identity::Unverified,
            now: test.at.unwrap_or_default(),
        },
        status: test.status,
        content_type: Some(test.content_type.as_deref().unwrap_or("text/html")),
    };
    let site = snapshot.site_for_host(question.facts.host);
    let claim = claim_of(&test.agent.value, registry, site.map(|_| &*entry.site));
    question.facts.identity = match test.identity.as_deref() {
        Some("verified") => Identity::Verified,
        Some("impostor") => Identity::Impostor,
        Some(_) => Identity::Unverified,
        None => identity_by_policy(&entry.site, &question.facts, claim, true),
    };
    let former;
    let holdings = match &test.held {
        None => Holdings::default(),
        Some(HeldByTest::Nothing) => Holdings { watched: true, ..Holdings::default() },
        Some(HeldByTest::InForce) => Holdings { watched: true, fetched: true, in_force: true, ..Holdings::default() },
        Some(HeldByTest::Former(text)) => {
            let body = Arc::from(text.as_bytes());
            let since = question.facts.now;
            former = [Held { former: Arc::new(Former::read(body, registry)), since, superseded_at: since }];
            Holdings { versions: &former, held: 1, watched: true, fetched: true, ..Holdings::default() }
        }
    };
    let (claimant, behaviour) = (Claimant { site, claim }, Behaviour::default());
    let scratch = &mut Scratch::default();
    let decision = decide_for(snapshot, registry, &question.facts, claimant, &holdings, behaviour, scratch);
    report(&decision, snapshot, registry, &question)
}

fn run(test: &PolicyTest, snapshot: &Snapshot, registry: &Registry) -> Vec<TestFailure> {
    let got = answer(test, snapshot, registry);
    let action = got.action.would.as_deref().unwrap_or(&got.action);
    let mut failures = Vec::new();
    let mut compare = |expected: Option<&Located<String>>, what: &str, came: &str| {
        let Some(expected) = expected.filter(|expected| expected.value != came) else { return };
        let reason = got.rule.as_ref().map_or("no rule decided".to_owned(), |rule| {
            format!("{}: {} decided, from {}", rule.kind, rule.pattern, rule.source)
        });
        let diagnostic = Diagnostic::error(
            "test-failed",
            expected.span,
            format!("the {what} is `{came}`, not `{}`", expected.value),
        )
        .related(test.span, format!("{} asks for {}", test.agent.value, test.path.value))
        .help(reason);
        failures.push(TestFailure { diagnostic });
    };
    let expect = &test.expect;
    if got.site.is_none() {
        let span = test.host.as_ref().map_or(test.span, |host| host.span);
        let diagnostic = Diagnostic::error("test-failed", span, "this host is not one of the site's");
        return vec![TestFailure { diagnostic }];
    }
    compare(expect.verdict.as_ref(), "verdict", got.verdict.name());
    compare(expect.kind.as_ref(), "kind", got.kind.name());
    let never_fetched = expect.never_fetched.as_ref();
    let never_fetched = never_fetched.map(|mark| Located { value: mark.value.to_string(), span: mark.span });
    compare(never_fetched.as_ref(), "mark `never_fetched`", &got.never_fetched.to_string());
    // What is done depends on the mode; a test of the answer is about what enforce does.
    compare(expect.action.as_ref(), "action", action.kind);
    let status =
        expect.answer_status.as_ref().map(|status| Located { value: status.value.to_string(), span: status.span });
    compare(status.as_ref(), "status", &action.status.unwrap_or(test.status).to_string());
    if let Some(lines) = &expect.tag {
        let expected: Vec<&str> = lines.iter().map(|line| line.value.as_str()).collect();
        if expected != got.x_robots_tag {
            let span = lines.first().map_or(test.span, |line| line.span);
            let came = if got.x_robots_tag.is_empty() {
                "nothing".to_owned()
            } else {
                format!("`{}`", got.x_robots_tag.join("` and `"))
            };
            let diagnostic = Diagnostic::error("test-failed", span, format!("X-Robots-Tag is {came}"))
                .related(test.span, format!("{} asks for {}", test.agent.value, test.path.value))
                .help("write the lines as they are sent, in their order; `[]` for none");
            failures.push(TestFailure { diagnostic });
        }
    }
    if let Some(lines) = &expect.signals {
        let expected: Vec<&str> = lines.iter().map(|line| line.value.as_str()).collect();
        if expected != got.signals {
            let span = lines.first().map_or(test.span, |line| line.span);
            let came =
                if got.signals.is_empty() { "none".to_owned() } else { format!("`{}`", got.signals.join("` and `")) };
            let diagnostic = Diagnostic::error("test-failed", span, format!("the signals of this response: {came}"))
                .related(test.span, format!("{} asks for {}", test.agent.value, test.path.value))
                .help("write the header lines as they are sent, in their order; `[]` for none");
            failures.push(TestFailure { diagnostic });
        }
    }
    failures
}
