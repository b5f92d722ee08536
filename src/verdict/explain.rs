//! The same decision with its reasons, as text and as JSON. Decides nothing itself: it asks `decide` and looks up what
//! the indexes of the decision point at.

use super::behaviour::{Behaviour, Claimant};
use super::decide::decide_for;
use super::{Action, Decision, Facts, Holdings, Identity, Kind, Scratch, Verdict};
use crate::crawlers::{Claim, Registry};
use crate::indexing::{Scope, parse_lines, place_of};
use crate::policy::Snapshot;
use crate::policy::compiled::{RuleSource, Sent, Site, combine};
use crate::policy::model::OriginTags;
use crate::time::{Timestamp, rfc3339};
use crate::yaml::{Diagnostic, Span};
use serde::Serialize;
use std::fmt::Write as _;

/// What is asked beyond the facts: the response that the tags are for.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The request.
    pub facts: Facts<'a>,
    /// The response's status.
    pub status: u16,
    /// The response's content type.
    pub content_type: Option<&'a str>,
}

/// The answer; serialised as `explain --json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Explanation {
    pub site: Option<String>,
    pub host: String,
    pub target: String,
    pub crawler: Option<CrawlerReport>,
    pub identity: Identity,
    /// It would be an impostor, but for a list of networks that verified nobody lately.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    pub group: Option<GroupReport>,
    pub rule: Option<RuleReport>,
    pub verdict: Verdict,
    pub kind: Kind,
    /// A violation of a crawler that was never served robots.txt here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_fetched: bool,
    pub action: ActionReport,
    pub x_robots_tag: Vec<String>,
    /// Lines of the origin that are not passed on, and stand in no line of ours either.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_away: Vec<String>,
    /// By what.
    #[serde(skip)]
    taken_by: &'static str,
    /// Header lines about the use of the content, as they are sent.
    pub signals: Vec<String>,
    /// What these lines come to for search engines, for each bot that they name, and for any other (`*`).
    pub effective: Vec<EffectiveReport>,
    /// The version of robots.txt it was judged by.
    pub version: Option<String>,
    /// Until when robots.txt is answered 503, for want of a copy of the origin's own.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339")]
    pub robots_txt_unavailable_until: Option<Timestamp>,
}

#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CrawlerReport {
    pub id: String,
    pub name: String,
    pub operator: Option<String>,
    pub token: Option<String>,
    pub purpose: &'static str,
}

#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupReport {
    pub agents: Vec<String>,
}

#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    pub kind: &'static str,
    pub pattern: String,
    /// `file:line:column`.
    pub source: String,
    #[serde(skip)]
    span: Option<Span>,
}

/// What binds a bot, as Google computes it: what everybody is told and what it is told itself.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EffectiveReport {
    pub bot: String,
    pub directives: Vec<String>,
}

#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionReport {
    /// `pass`, `block`, `slow`, `license`, `pause`, `robots_txt` or `tdmrep`.
    pub kind: &'static str,
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<Box<ActionReport>>,
}

/// Whom a person means by `agent`: a token, id or name of the registry, a token of the policy, or a whole user agent.
pub fn claim_of(agent: &str, registry: &Registry, site: Option<&Site>) -> Claim {
    let by_policy =
        site.and_then(|site| site.tokens.tokens().iter().position(|token| token.eq_ignore_ascii_case(agent)));
    if let Some(index) = by_policy.and_then(|index| u16::try_from(index).ok()) {
        return Claim::Token(index);
    }
    match (registry.find(agent), site) {
        (Some(index), _) => Claim::Known(index),
        (None, Some(site)) => registry.identify_with(agent.as_bytes(), &site.tokens),
        (None, None) => registry.identify(agent.as_bytes()),
    }
}

/// The label of a claim: the registry's id, the policy's token, `other`; nothing for a person.
pub fn claim_label<'a>(claim: Claim, registry: &'a Registry, site: Option<&'a Site>) -> Option<&'a str> {
    match claim {
        Claim::Nobody => None,
        Claim::Other => Some("other"),
        Claim::Known(index) => Some(&registry.get(index).id),
        Claim::Token(index) => site.and_then(|site| site.tokens.tokens().get(usize::from(index))).map(String::as_str),
    }
}

/// `file:line:column` of what a decision's rule came from; of the group where no rule decided.
pub fn rule_place(decision: &Decision, site: &Site) -> Option<String> {
    let rule = decision.rule?;
    let source = match rule.rule {
        Some(index) => site.rule_sources.get(usize::from(rule.group))?.get(index as usize)?,
        None => return None,
    };
    Some(place(source, site).0)
}

/// `file:line:column` of what a decision's group came from: where its crawl delay was said.
pub fn group_place(decision: &Decision, site: &Site) -> Option<String> {
    Some(place(site.group_sources.get(usize::from(decision.rule?.group))?, site).0)
}

fn place(source: &RuleSource, site: &Site) -> (String, Option<Span>) {
    let file = &site.policy.source.name;
    match source {
        RuleSource::Policy(span) | RuleSource::Purpose(span) => {
            (format!("{file}:{}:{}", span.line, span.column), Some(*span))
        }
        RuleSource::Staging => (format!("{file} (environment: staging)"), None),
        RuleSource::Origin(line) => {
            (site.origin.as_ref().map_or_else(|| "the origin".to_owned(), |origin| origin.place(*line)), None)
        }
    }
}

/// Decides and says why, without a ledger: anyone may hold anything that was in force within the grace time. The user
/// agent may be a bare token.
pub fn explain(snapshot: &Snapshot, registry: &Registry, question: &Question<'_>) -> Explanation {
    explain_response(snapshot, registry, question, &[])
}

/// The same, where the origin's answer has these lines of X-Robots-Tag.
pub fn explain_response(
    snapshot: &Snapshot,
    registry: &Registry,
    question: &Question<'_>,
    origin_lines: &[String],
) -> Explanation {
    let claimant = claimant_of(snapshot, registry, &question.facts);
    let now = question.facts.now;
    let holdings = claimant.site.map(|index| Holdings::of_anyone(&snapshot.sites()[index], now)).unwrap_or_default();
    explain_for(snapshot, registry, question, claimant, &holdings, Behaviour::default(), origin_lines)
}

/// Whom a question is about: its user agent may be a bare token.
pub fn claimant_of(snapshot: &Snapshot, registry: &Registry, facts: &Facts<'_>) -> Claimant {
    let site = snapshot.site_for_host(facts.host);
    let entry = site.map(|index| &*snapshot.sites()[index].site);
    Claimant { site, claim: claim_of(&String::from_utf8_lossy(facts.user_agent), registry, entry) }
}

/// The same with what is remembered of the claimant: what it may hold, how it conducted itself.
pub fn explain_for(
    snapshot: &Snapshot,
    registry: &Registry,
    question: &Question<'_>,
    claimant: Claimant,
    holdings: &Holdings<'_>,
    behaviour: Behaviour,
    origin_lines: &[String],
) -> Explanation {
    let scratch = &mut Scratch::default();
    let decision = decide_for(snapshot, registry, &question.facts, claimant, holdings, behaviour, scratch);
    report_response(&decision, snapshot, registry, question, origin_lines)
}

/// A decision that was made, looked up.
pub fn report(decision: &Decision, snapshot: &Snapshot, registry: &Registry, question: &Question<'_>) -> Explanation {
    report_response(decision, snapshot, registry, question, &[])
}

fn report_response(
    decision: &Decision,
    snapshot: &Snapshot,
    registry: &Registry,
    question: &Question<'_>,
    origin_lines: &[String],
) -> Explanation {
    let site = decision.site.map(|index| &*snapshot.sites()[index].site);
    let group = decision
        .rule
        .zip(site)
        .map(|(rule, site)| GroupReport { agents: site.document.groups[usize::from(rule.group)].agents.clone() });
    let rule = decision.rule.zip(site).and_then(|(reference, site)| {
        let (group, index) = (usize::from(reference.group), reference.rule? as usize);
        let rule = &site.document.groups[group].rules[index];
        let (source, span) = place(&site.rule_sources[group][index], site);
        Some(RuleReport {
            kind: if rule.allow { "allow" } else { "disallow" },
            pattern: rule.pattern.as_str().to_owned(),
            source,
            span,
        })
    });
    // A self-made answer is text, whatever the page would have been, and the origin has no part in it.
    let theirs = if decision.action == Action::Pass { origin_lines } else { &[] };
    let (status, content_type) = match decision.action {
        Action::Pass => (question.status, question.content_type),
        Action::Block(index) | Action::Slow { answer: index, .. } => {
            (site.map_or(403, |site| site.answers[usize::from(index)].status), Some("text/html"))
        }
        Action::Pause { .. } => (503, Some("text/html")),
        Action::RobotsTxt => (200, Some("text/plain")),
        Action::License { status } => (status, Some("text/html")),
        Action::TdmRep => (200, Some("application/json")),
    };
    let (lines, taken_by) = match site {
        Some(site) => sent_lines(site, decision, status, content_type, theirs),
        None => (theirs.to_vec(), None),
    };
    Explanation {
        site: site.map(|site| site.name.clone()),
        host: String::from_utf8_lossy(question.facts.host).into_owned(),
        target: String::from_utf8_lossy(question.facts.target).into_owned(),
        crawler: crawler_report(decision.claim, registry, site),
        identity: question.facts.identity,
        suspended: question.facts.identity == Identity::Suspended,
        group,
        rule,
        verdict: decision.verdict,
        kind: decision.kind,
        never_fetched: decision.never_fetched,
        action: ActionReport {
            would: decision.would.map(|would| Box::new(action_report(would, site))),
            ..action_report(decision.action, site)
        },
        signals: site.map(|site| signal_lines(decision, site)).unwrap_or_default(),
        effective: effective(&lines, crawler_report(decision.claim, registry, site).and_then(|crawler| crawler.token)),
        x_robots_tag: lines,
        taken_away: taken_by.map_or_else(Vec::new, |_| theirs.to_vec()),
        taken_by: taken_by.unwrap_or_default(),
        version: site.map(|site| site.robots_txt.version.to_string()),
        robots_txt_unavailable_until: site
            .and_then(|site| site.robots_txt.awaits_origin_until)
            .filter(|until| question.facts.now < *until),
    }
}

/// What a page says about its use; the answers that are made here are no content, but one that asks for a licence says
/// which.
fn signal_lines(decision: &Decision, site: &Site) -> Vec<String> {
    match decision.action {
        Action::Pass => site.signals.fields(decision.signals).map(|(name, value)| format!("{name}: {value}")).collect(),
        Action::License { .. } => {
            let license = site.signals.license(decision.signals, decision.rule.map(|rule| rule.group));
            license.map(|license| format!("Link: {}", license.link)).into_iter().collect()
        }
        Action::Block(_) | Action::Slow { .. } | Action::Pause { .. } | Action::RobotsTxt | Action::TdmRep => {
            Vec::new()
        }
    }
}

/// The lines that the client receives; and by what the origin's are taken away, where they are.
fn sent_lines(
    site: &Site,
    decision: &Decision,
    status: u16,
    content_type: Option<&str>,
    theirs: &[String],
) -> (Vec<String>, Option<&'static str>) {
    if site.tags.is_hidden(&decision.path_rules, status) {
        return (Vec::new(), (!theirs.is_empty()).then_some("a 304 does not say which rules hold"));
    }
    let ours = site.tags.tags(&decision.path_rules, status, content_type.map(str::as_bytes));
    match combine(ours.as_deref(), theirs.iter().map(String::as_bytes), site.origin_tags) {
        Sent::Added([]) => (theirs.to_vec(), None),
        Sent::Added(lines) => {
            let mut all: Vec<String> = theirs.iter().chain(lines).cloned().collect();
            all.sort_by_key(|line| place_of(line.as_bytes()));
            (all, None)
        }
        Sent::Instead(lines) => {
            let taken_by = match ours.as_ref().and_then(|ours| ours.origin_tags).unwrap_or(site.origin_tags) {
                OriginTags::Strip => Some("`origin_tags: strip`"),
                OriginTags::Replace => Some("`origin_tags: replace`"),
                OriginTags::Keep | OriginTags::Merge => None,
            };
            (lines.into_owned(), taken_by)
        }
    }
}

/// Googlebot, Bingbot, every bot that a line names, and the one that asks; then any other.
fn effective(lines: &[String], asks: Option<String>) -> Vec<EffectiveReport> {
    let tags = parse_lines(lines.iter().map(String::as_bytes));
    let mut bots: Vec<String> = vec!["googlebot".into(), "bingbot".into()];
    let named = tags.iter().filter_map(|(scope, _)| match scope {
        Scope::All => None,
        Scope::Bot(name) => Some(name.to_string()),
    });
    for bot in named.chain(asks.map(|token| token.to_ascii_lowercase())) {
        if !bots.contains(&bot) {
            bots.push(bot);
        }
    }
    bots.push("*".into());
    let directives = |bot: &str| tags.effective(bot).iter().map(ToString::to_string).collect();
    bots.into_iter().map(|bot| EffectiveReport { directives: directives(&bot), bot }).collect()
}

fn crawler_report(claim: Claim, registry: &Registry, site: Option<&Site>) -> Option<CrawlerReport> {
    let id = claim_label(claim, registry, site)?.to_owned();
    Some(match claim {
        Claim::Known(index) => {
            let crawler = registry.get(index);
            let own =
                site.and_then(|site| site.policy.own_crawler(crawler.tokens.first()?)).and_then(|own| own.purpose);
            CrawlerReport {
                id,
                name: crawler.name.clone(),
                operator: Some(crawler.operator.clone()),
                token: crawler.tokens.first().cloned(),
                purpose: own.unwrap_or(crawler.purpose).name(),
            }
        }
        Claim::Token(_) => {
            let purpose = site.and_then(|site| site.policy.own_crawler(&id)).and_then(|own| own.purpose);
            let purpose = purpose.map_or("other", |purpose| purpose.name());
            CrawlerReport { name: id.clone(), token: Some(id.clone()), id, operator: None, purpose }
        }
        Claim::Other | Claim::Nobody => {
            CrawlerReport { id, name: "a bot that no list knows".into(), operator: None, token: None, purpose: "other" }
        }
    })
}

fn action_report(action: Action, site: Option<&Site>) -> ActionReport {
    let (status, retry_after) = match action {
        Action::Pass => (None, None),
        Action::RobotsTxt | Action::TdmRep => (Some(200), None),
        Action::License { status } => (Some(status), None),
        Action::Pause { retry_after } => (Some(503), Some(retry_after)),
        Action::Block(index) => {
            let answer = site.and_then(|site| site.answers.get(usize::from(index)));
            (answer.map(|answer| answer.status), answer.and_then(|answer| answer.retry_after))
        }
        Action::Slow { answer, retry_after } => {
            (site.and_then(|site| site.answers.get(usize::from(answer))).map(|answer| answer.status), Some(retry_after))
        }
    };
    ActionReport { kind: action.name(), status, retry_after, would: None }
}

impl ActionReport {
    fn sentence(&self) -> String {
        match (self.kind, self.status) {
            ("block", Some(status)) => format!("refused with {status}"),
            ("slow", Some(status)) => {
                format!("refused with {status}, come back in {} s", self.retry_after.unwrap_or(0))
            }
            ("pause", _) => format!("answered 503, come back in {} s", self.retry_after.unwrap_or(0)),
            ("robots_txt", _) => "answered with the site's robots.txt".into(),
            ("license", Some(status)) => format!("answered {status} without a licence token, forwarded with one"),
            ("tdmrep", _) => "answered with the site's tdmrep.json".into(),
            _ => "forwarded".into(),
        }
    }
}

impl Explanation {
    /// For a person: several lines, the rule with its place in the policy.
    pub fn to_text(&self, snapshot: &Snapshot, colour: bool) -> String {
        let mut text = String::new();
        let who = match &self.crawler {
            None => "nobody that says it is a crawler".to_owned(),
            Some(crawler) => match &crawler.operator {
                Some(operator) => format!("{} ({operator}, {})", crawler.name, crawler.purpose),
                None => crawler.name.clone(),
            },
        };
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<10} {value}");
        };
        line("request", &format!("{}{}", self.host, self.target));
        line("crawler", &who);
        let Some(site) =
            self.site.as_deref().and_then(|name| snapshot.site_named(name)).map(|index| &snapshot.sites()[index].site)
        else {
            line("site", "no policy claims this host: forwarded untouched");
            return text;
        };
        line(
            "site",
            &format!("{} ({}), robots.txt version {}", site.name, site.policy.source.name, site.robots_txt.version),
        );
        if let Some(until) = self.robots_txt_unavailable_until {
            let said = format!(
                "answered 503 until {until}, for there is no copy of the origin's own: who asks for it now takes all for \
                 disallowed; requests are judged by the policy alone"
            );
            line("robots.txt", &said);
        }
        line(
            "identity",
            match self.identity {
                Identity::Unverified => "unverified: the user agent is all that is known",
                Identity::Verified => "verified: it comes from an address of this crawler",
                Identity::Suspended => {
                    "unverified: it comes from no address of this crawler, but nobody did within seven days, so the list \
                     proves nothing"
                }
                Identity::Impostor => "impostor: it does not come from an address of this crawler",
            },
        );
        if let Some(group) = &self.group {
            line("group", &format!("User-agent: {}", group.agents.join(", ")));
        }
        if let Some(rule) = &self.rule {
            line(
                "rule",
                &format!(
                    "{}: {}   ({})",
                    if rule.kind == "allow" { "Allow" } else { "Disallow" },
                    rule.pattern,
                    rule.source
                ),
            );
        }
        line("verdict", &format!("{} — {}", self.verdict.name(), self.why()));
        line(
            "kind",
            &format!("{}{}", self.kind.name(), if self.never_fetched { ", marked never_fetched" } else { "" }),
        );
        let mut action = self.action.sentence();
        if let Some(would) = &self.action.would {
            let _ = write!(action, " (observed only; under enforce: {})", would.sentence());
        }
        line("action", &action);
        for tag in &self.x_robots_tag {
            line("tag", &format!("X-Robots-Tag: {tag}"));
        }
        for tag in &self.taken_away {
            line("taken away", &format!("X-Robots-Tag: {tag} (the origin's, by {})", self.taken_by));
        }
        for bot in self.effective.iter().filter(|_| !(self.x_robots_tag.is_empty() && self.taken_away.is_empty())) {
            let name = if bot.bot == "*" { "any other" } else { &bot.bot };
            let said = if bot.directives.is_empty() { "nothing".into() } else { bot.directives.join(", ") };
            line("tells", &format!("{name}: {said}"));
        }
        for signal in &self.signals {
            line("signal", signal);
        }
        if let Some(span) = self.rule.as_ref().and_then(|rule| rule.span) {
            let note = Diagnostic::warning("rule", span, "this line decided").label(self.verdict.name());
            // The renderer speaks of warnings; the heading is ours.
            let shown = note.render(&site.policy.source, colour);
            let snippet: Vec<&str> = shown.lines().skip(1).collect();
            let _ = write!(text, "\n{}\n", snippet.join("\n"));
        }
        text
    }

    fn why(&self) -> &'static str {
        match self.kind {
            Kind::NotACrawler => "people, and tools that the policy does not name, are not judged",
            Kind::Allowed if self.rule.is_some() => "the longest rule that matches allows it",
            Kind::Allowed => "no rule matches it",
            Kind::StaleCopy => "disallowed now, but a version it may still hold allowed it: never refused",
            Kind::Violation if self.never_fetched => {
                "disallowed, and it never fetched robots.txt here, though it was there all the time"
            }
            Kind::Violation => "disallowed by every copy of robots.txt that it may hold",
            Kind::Unproven if self.verdict != Verdict::Disallowed => {
                "sooner after the last request than crawl_delay says; which copies it may hold is not known"
            }
            Kind::Unproven => "the longest rule that matches disallows it; which copies it may hold is not known",
            Kind::Ambiguous => "no rule matches the URL as sent, but what it resolves to is disallowed: no violation",
            Kind::NotBound if self.verdict == Verdict::Disallowed => {
                "the policy names it, though its operator says it ignores robots.txt"
            }
            Kind::NotBound => "its operator says that these rules do not bind it, and no group names it",
            Kind::TooFast => "sooner after the last request than crawl_delay says",
            Kind::Impostor => "it is proven not to be the crawler that it says it is",
            Kind::Trapped => "a trap was asked for, by this request or by one from this address under the same name",
            Kind::Exempt => "disallowed, and the policy exempts it: never refused, and no violation",
            Kind::Unverified => "the policy refuses crawlers that are not verified",
        }
    }
}
