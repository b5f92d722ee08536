//! [`Tally`]: the counts of one worker of an audit, with a [`Row`] for each crawler and identity
//! (verified, unverified, or suspected impostor). The tallies of all workers are merged at the end.

use super::sketch::Sketch;
use crate::logs::Unreadable;
use crate::record::{CountedAction, Counts};
use crate::time::Timestamp;
use crate::verdict::{Action, Decision, Kind, Verdict};
use ahash::AHashMap;
use derive_more::AddAssign;
use serde::Serialize;
use std::collections::BTreeMap;
use strum::{IntoStaticStr, VariantArray};

/// Lines that cannot be read and are shown.
pub const EXAMPLES: usize = 3;

/// Kinds of disallowed requests that are not certainly against the rules.
const UNCERTAIN: [Kind; 4] = [
    Kind::StaleCopy,
    Kind::Unproven,
    Kind::NotBound,
    Kind::Exempt,
];

/// Days that are counted by themselves; a log with wrong times may hold any number.
const DAYS: usize = 4_000;

/// A line that cannot be read. The first of a log sort first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Example {
    /// Index of the input.
    pub input: usize,
    /// Its number in the input.
    pub line: u64,
    /// Why it cannot be read.
    pub reason: Unreadable,
    /// Its beginning.
    pub text: String,
}

/// A rule: the index of the entry, its group, its place there. Of a request that no rule decided
/// the place is absent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleKey {
    /// The index of the site.
    pub site: usize,
    /// The index of the group in the document of the site.
    pub group: u16,
    /// The index of the rule in the group.
    pub rule: u32,
}

/// Who sent a request under a crawler's name, as far as the networks say that its operator
/// publishes or the policy lists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum ClientIdentity {
    /// The crawler: the address is in its networks.
    Verified,
    /// Nothing is proven.
    Unverified,
    /// Another client, it seems: the address is outside of the networks.
    #[strum(serialize = "suspected impostor")]
    SuspectedImpostor,
}

impl ClientIdentity {
    /// What tables call it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Whether a client uses a crawler's name and is not proven to be it. Bots that claim no known name
/// accuse themselves.
pub fn is_only_claimed(identity: Option<ClientIdentity>) -> bool {
    matches!(
        identity,
        Some(ClientIdentity::Unverified | ClientIdentity::SuspectedImpostor)
    )
}

/// When the first and the last of some requests were; the lines of a log are in any order.
#[derive(Default)]
pub struct Span {
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

impl Span {
    fn at(time: Timestamp) -> Span {
        Span {
            first: Some(time),
            last: Some(time),
        }
    }

    fn add(&mut self, other: Span) {
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
    }
}

/// The requests under one crawler's name by clients of one identity.
#[derive(Default)]
pub struct Row {
    /// Its requests by kind, and the bytes that it was sent.
    pub all: Counts,
    /// Those of them that are disallowed, without ambiguous ones.
    pub disallowed: Counts,
    /// What enforcement would have done, by the name of the action.
    pub would: BTreeMap<&'static str, u64>,
    pub rules: AHashMap<RuleKey, u64>,
    /// Its disallowed requests.
    pub span: Span,
    /// Whether its requests are judged: tools that no rule names are not.
    pub judged: bool,
}

/// The requests under one crawler's name. Clients that claim no name that could be proven have a
/// row of their own.
#[derive(Default)]
pub struct Rows([Row; ClientIdentity::VARIANTS.len() + 1]);

impl Rows {
    /// The row of these clients.
    pub fn of(&mut self, identity: Option<ClientIdentity>) -> &mut Row {
        &mut self.0[identity.map_or(ClientIdentity::VARIANTS.len(), |identity| identity as usize)]
    }

    /// The rows with requests.
    pub fn all(&self) -> impl Iterator<Item = (Option<ClientIdentity>, &Row)> {
        let identities = ClientIdentity::VARIANTS
            .iter()
            .copied()
            .map(Some)
            .chain([None]);
        identities
            .zip(&self.0)
            .filter(|(_, row)| row.all.requests() > 0)
    }

    fn merge(&mut self, other: Rows) {
        for (row, other) in self.0.iter_mut().zip(other.0) {
            row.merge(other);
        }
    }
}

/// The requests of one day.
#[derive(AddAssign, Clone, Copy, Default, Serialize)]
pub struct DayCounts {
    pub requests: u64,
    pub crawlers: u64,
    pub disallowed: u64,
    pub certain: u64,
    /// Those of `certain` by clients that use a crawler's name, of which nothing is proven or that
    /// are suspected.
    pub certain_claimed: u64,
}

/// Everything that was counted.
#[derive(Default)]
pub struct Tally {
    pub lines: u64,
    pub unreadable: BTreeMap<Unreadable, u64>,
    pub examples: Vec<Example>,
    pub no_request: u64,
    pub server_messages: u64,
    pub no_user_agent: u64,
    pub no_host: u64,
    pub other_hosts: u64,
    /// Whether any request has a user agent, by the index of the input. Absent where the format has
    /// none.
    pub has_user_agents: BTreeMap<usize, bool>,
    pub people: u64,
    pub people_bytes: u64,
    pub span: Span,
    /// By days since 1970.
    pub days: BTreeMap<i64, DayCounts>,
    /// By the crawler's label.
    pub rows: AHashMap<Box<str>, Rows>,
    pub urls: Sketch,
    /// Unlisted bots by what they call themselves.
    pub unlisted: Sketch,
    /// Of those, the requests that are disallowed.
    pub unlisted_disallowed: Sketch,
}

impl Row {
    /// Counts a request that was decided by the rules of `site` (its place among the sites of the
    /// rules); `bytes` were sent. Returns whether it was disallowed, and whether that is certain.
    /// One that the readings of robots.txt do not agree on counts as ambiguous, and not as
    /// disallowed. Of the actions only refusals are counted, also those that would come in enforce
    /// mode.
    pub fn add(
        &mut self,
        site: usize,
        decision: &Decision,
        time: Timestamp,
        bytes: u64,
    ) -> (bool, bool) {
        let action = if decision.robots_txt {
            CountedAction::RobotsTxt
        } else {
            CountedAction::from_decision(decision)
        };
        self.all.add(decision.kind, action, 1);
        self.all.add_bytes(bytes);
        self.judged |= decision.verdict != Verdict::NotACrawler;
        let would = decision
            .would
            .or(Some(decision.action))
            .filter(|action| is_refusal(*action));
        if let Some(action) = would {
            *self.would.entry(action.name()).or_default() += 1;
        }
        if decision.verdict != Verdict::Disallowed || decision.kind == Kind::Ambiguous {
            return (false, false);
        }
        self.disallowed.add(decision.kind, action, 1);
        self.disallowed.add_bytes(bytes);
        self.span.add(Span::at(time));
        if let Some(deciding) = decision.rule
            && let Some(rule) = deciding.rule
        {
            let group = deciding.group;
            let key = RuleKey { site, group, rule };
            *self.rules.entry(key).or_default() += 1;
        }
        (true, !UNCERTAIN.contains(&decision.kind))
    }

    /// Requests that are certainly against the rules.
    pub fn certain(&self) -> u64 {
        let uncertain = UNCERTAIN.iter().map(|kind| self.disallowed.of_kind(*kind));
        self.disallowed.requests() - uncertain.sum::<u64>()
    }

    /// Adds what another worker has counted.
    fn merge(&mut self, other: Row) {
        self.all.add_all(&other.all);
        self.disallowed.add_all(&other.disallowed);
        self.span.add(other.span);
        self.judged |= other.judged;
        for (name, number) in other.would {
            *self.would.entry(name).or_default() += number;
        }
        for (rule, number) in other.rules {
            *self.rules.entry(rule).or_default() += number;
        }
    }
}

/// Whether a crawler gets something else than the page because of what it did: a block, a slow-down
/// or a demand for a licence.
fn is_refusal(action: Action) -> bool {
    match action {
        Action::Block(_) | Action::Slow { .. } | Action::License { .. } => true,
        Action::Pass | Action::Pause { .. } | Action::RobotsTxt | Action::TdmRep => false,
    }
}

impl Tally {
    /// Extends the span of all requests by this time, and returns the counts of its day (in UTC);
    /// `None` where the day is new and `DAYS` are counted already.
    pub fn day(&mut self, time: Timestamp) -> Option<&mut DayCounts> {
        self.span.add(Span::at(time));
        let day = time.0.div_euclid(86_400);
        if self.days.len() >= DAYS && !self.days.contains_key(&day) {
            return None;
        }
        Some(self.days.entry(day).or_default())
    }

    /// Counts a line that cannot be read, and keeps its beginning if it is one of the first
    /// `EXAMPLES` such lines by input and number.
    pub fn unreadable(&mut self, input: usize, line: u64, reason: Unreadable, text: &[u8]) {
        *self.unreadable.entry(reason).or_default() += 1;
        if let Some(last) = self.examples.get(EXAMPLES - 1)
            && (last.input, last.line) <= (input, line)
        {
            return;
        }
        let text = crate::printable::printable(&text[..text.len().min(200)]);
        self.examples.push(Example {
            input,
            line,
            reason,
            text,
        });
        self.examples.sort();
        self.examples.truncate(EXAMPLES);
    }

    /// Adds what another worker has counted.
    pub fn merge(&mut self, other: Tally) {
        self.lines += other.lines;
        for (reason, number) in other.unreadable {
            *self.unreadable.entry(reason).or_default() += number;
        }
        self.examples.extend(other.examples);
        self.examples.sort();
        self.examples.truncate(EXAMPLES);
        self.no_request += other.no_request;
        self.server_messages += other.server_messages;
        self.no_user_agent += other.no_user_agent;
        self.no_host += other.no_host;
        self.other_hosts += other.other_hosts;
        for (input, has_one) in other.has_user_agents {
            *self.has_user_agents.entry(input).or_default() |= has_one;
        }
        self.people += other.people;
        self.people_bytes += other.people_bytes;
        self.span.add(other.span);
        for (day, counts) in other.days {
            *self.days.entry(day).or_default() += counts;
        }
        for (label, row) in other.rows {
            self.rows.entry(label).or_default().merge(row);
        }
        self.urls.merge(other.urls);
        self.unlisted.merge(other.unlisted);
        self.unlisted_disallowed.merge(other.unlisted_disallowed);
    }
}
