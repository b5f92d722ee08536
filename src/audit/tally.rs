//! [`Tally`]: the counts of one worker of an audit, with a [`Row`] for each crawler and identity
//! (verified, unverified, or suspected impostor). The tallies of all workers are merged at the end.
//! Whether an older robots.txt was obeyed depends on the end of the log: until that is known,
//! [`LogCounts`] keep such requests apart.

use super::sketch::Sketch;
use crate::logs::Unreadable;
use crate::record::{CountedAction, Counts};
use crate::report::ClientIdentity;
use crate::time::Timestamp;
use crate::verdict::{Action, Decision, Kind, Verdict};
use ahash::AHashMap;
use derive_more::AddAssign;
use std::collections::BTreeMap;
use strum::VariantArray;

/// Lines that cannot be read and are shown.
pub const EXAMPLES: usize = 3;

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

/// A request that was judged.
pub struct Judged<'a> {
    /// The place of its site among those of the rules.
    pub site: usize,
    /// What the rules say.
    pub decision: &'a Decision,
    /// Until when it does not count, if a time ends that.
    pub older_until: Option<Timestamp>,
    /// When it came.
    pub time: Timestamp,
    /// The bytes that were sent.
    pub bytes: u64,
}

impl Judged<'_> {
    /// Whether the rules disallow it, whether it counts or not. Where the readings of robots.txt do
    /// not agree they do not, and no rule is broken with a request for robots.txt itself.
    pub fn is_disallowed(&self) -> bool {
        let decision = self.decision;
        decision.verdict == Verdict::Disallowed
            && decision.kind != Kind::Ambiguous
            && !decision.robots_txt
    }

    /// Whether it counts as against the rules.
    fn breaks_rules(&self) -> bool {
        self.is_disallowed() && matches!(self.decision.kind, Kind::Violation | Kind::Trapped)
    }

    /// What enforcement would have done. The log tells what the server did, and no policy.
    fn would(&self) -> CountedAction {
        if self.decision.robots_txt {
            return CountedAction::RobotsTxt;
        }
        match self.decision.would.unwrap_or(self.decision.action) {
            Action::Block(_) => CountedAction::WouldBlock,
            Action::Slow { .. } => CountedAction::WouldSlow,
            Action::License { .. } => CountedAction::WouldLicense,
            Action::Pass | Action::Pause { .. } | Action::RobotsTxt | Action::TdmRep => {
                CountedAction::Pass
            }
        }
    }
}

/// When the first and the last of some requests were; the lines of a log are in any order.
#[derive(Default)]
pub struct Span {
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

impl Span {
    /// That of one request.
    pub fn at(time: Timestamp) -> Span {
        Span {
            first: Some(time),
            last: Some(time),
        }
    }

    /// Extends it by another.
    pub fn add(&mut self, other: Span) {
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
    }
}

/// Requests of a log by kind. Those that do not count until some moment are kept by that moment.
#[derive(Default)]
pub struct LogCounts {
    counted: Counts,
    in_doubt: BTreeMap<Timestamp, Counts>,
}

impl LogCounts {
    fn add(&mut self, request: &Judged<'_>) {
        let counts = match request.older_until {
            Some(until) => self.in_doubt.entry(until).or_default(),
            None => &mut self.counted,
        };
        counts.add(request.decision.kind, request.would(), 1);
        counts.add_bytes(request.bytes);
    }

    fn merge(&mut self, other: &LogCounts) {
        self.counted.add_all(&other.counted);
        for (until, counts) in &other.in_doubt {
            self.in_doubt.entry(*until).or_default().add_all(counts);
        }
    }

    fn requests(&self) -> u64 {
        let in_doubt = self.in_doubt.values().map(Counts::requests);
        self.counted.requests() + in_doubt.sum::<u64>()
    }

    /// All of them in a log that ends at `end`: see [`Counts::settle`].
    pub fn settled(&self, end: Timestamp) -> Counts {
        let mut all = self.counted;
        for (until, counts) in &self.in_doubt {
            let mut counts = *counts;
            for kind in [Kind::StaleCopy, Kind::Unproven] {
                if counts.of_kind(kind) > 0 {
                    counts.set_older_until(kind, *until);
                }
            }
            counts.settle(end);
            all.add_all(&counts);
        }
        all
    }
}

/// Requests that a rule disallowed.
#[derive(AddAssign, Clone, Copy, Default)]
pub struct RuleHits {
    /// All of them.
    pub disallowed: u64,
    /// Those that count as against the rules.
    pub broken: u64,
}

/// The requests under one crawler's name by clients of one identity.
#[derive(Default)]
pub struct Row {
    /// Its requests.
    pub counts: LogCounts,
    /// The bytes that were sent for disallowed ones.
    pub disallowed_bytes: u64,
    /// The rules that disallowed them.
    pub rules: AHashMap<RuleKey, RuleHits>,
    /// When those came that count as against the rules.
    pub broke: Span,
}

/// The requests under one crawler's name.
#[derive(Default)]
pub struct Rows([Row; ClientIdentity::VARIANTS.len()]);

impl Rows {
    /// The row of these clients.
    pub fn row(&mut self, identity: ClientIdentity) -> &mut Row {
        &mut self.0[identity as usize]
    }

    /// The rows with requests.
    pub fn iter(&self) -> impl Iterator<Item = (ClientIdentity, &Row)> {
        let identities = ClientIdentity::VARIANTS.iter().copied();
        identities
            .zip(&self.0)
            .filter(|(_, row)| row.counts.requests() > 0)
    }

    fn merge(&mut self, other: Rows) {
        for (row, other) in self.0.iter_mut().zip(other.0) {
            row.merge(other);
        }
    }
}

/// The requests of crawlers on one day.
#[derive(Default)]
pub struct Day {
    /// Without those of suspected impostors.
    pub own: LogCounts,
    /// Those of suspected impostors.
    pub pretended: LogCounts,
}

impl Day {
    /// Counts a request.
    pub fn add(&mut self, identity: ClientIdentity, request: &Judged<'_>) {
        match identity {
            ClientIdentity::Verified | ClientIdentity::Unverified => self.own.add(request),
            ClientIdentity::SuspectedImpostor | ClientIdentity::Impostor => {
                self.pretended.add(request);
            }
        }
    }

    fn merge(&mut self, other: &Day) {
        self.own.merge(&other.own);
        self.pretended.merge(&other.pretended);
    }
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
    pub visitors: u64,
    pub visitors_bytes: u64,
    /// Requests that were disallowed when they came.
    pub disallowed: u64,
    /// All requests that were for a judged host.
    pub span: Span,
    /// By days since 1970.
    pub days: BTreeMap<i64, Day>,
    /// By the crawler's label.
    pub rows: AHashMap<Box<str>, Rows>,
    pub urls: Sketch,
    /// Unknown bots by what they call themselves.
    pub unknown_bots: Sketch,
}

impl Row {
    /// Counts a request.
    pub fn add(&mut self, request: &Judged<'_>) {
        self.counts.add(request);
        if !request.is_disallowed() {
            return;
        }
        self.disallowed_bytes += request.bytes;
        let breaks_rules = request.breaks_rules();
        if breaks_rules {
            self.broke.add(Span::at(request.time));
        }
        if let Some(deciding) = request.decision.rule
            && let Some(rule) = deciding.rule
        {
            let key = RuleKey {
                site: request.site,
                group: deciding.group,
                rule,
            };
            *self.rules.entry(key).or_default() += RuleHits {
                disallowed: 1,
                broken: u64::from(breaks_rules),
            };
        }
    }

    /// Adds what another worker has counted.
    fn merge(&mut self, other: Row) {
        self.counts.merge(&other.counts);
        self.disallowed_bytes += other.disallowed_bytes;
        self.broke.add(other.broke);
        for (rule, hits) in other.rules {
            *self.rules.entry(rule).or_default() += hits;
        }
    }
}

impl Tally {
    /// The counts of the day (in UTC) of this time; `None` where it is new and `DAYS` are counted
    /// already.
    pub fn day(&mut self, time: Timestamp) -> Option<&mut Day> {
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
        self.visitors += other.visitors;
        self.visitors_bytes += other.visitors_bytes;
        self.disallowed += other.disallowed;
        self.span.add(other.span);
        for (day, counts) in other.days {
            self.days.entry(day).or_default().merge(&counts);
        }
        for (label, row) in other.rows {
            self.rows.entry(label).or_default().merge(row);
        }
        self.urls.merge(other.urls);
        self.unknown_bots.merge(other.unknown_bots);
    }
}
