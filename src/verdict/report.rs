//! [`report`] makes an [`Explanation`] of a [`Decision`]: it looks up what the indexes of the
//! decision point at. [`explain`] makes the decision, too.

use super::decide::decide_for;
use super::decision::{Action, Decision};
use super::explanation::{
    ActionReport, CrawlerReport, EffectiveReport, Explanation, GroupReport, ResponseFacts,
    RuleReport,
};
use super::identity::{Identity, Proof, evidence_of_policy};
use super::labels::{claim_label, claim_of, source_place};
use super::pass_reason::{LINE_FOR_ALL, PassReason, line_for_one};
use super::{Behaviour, CachedVersions, Case, Claimant, Facts, Scratch};
use crate::crawlers::{Claim, Purpose, Registry, SiteMarkers, product_name};
use crate::indexing::{Scope, parse_lines, place_of};
use crate::policy::Snapshot;
use crate::policy::lint::may_be_enforced;
use crate::policy::model::OriginTags;
use crate::policy::site::{Sent, Site, combine};

/// Decides and gives the reasons, without a ledger: the crawler may have cached every version that
/// was in force within the grace time. The user agent may be the bare token, id or name of a
/// crawler. Where no site has the host, the request is reported as forwarded.
pub fn explain(
    snapshot: &Snapshot,
    registry: &Registry,
    facts: &Facts<'_>,
    response: &ResponseFacts<'_>,
) -> Explanation {
    match Claimant::named(snapshot, registry, facts) {
        Some(claimant) => {
            let cached_versions = CachedVersions::of_anyone(claimant, facts.now);
            explain_for(
                &Case {
                    registry,
                    facts: *facts,
                    claimant,
                    cached_versions,
                },
                response,
            )
        }
        None => report_unclaimed(registry, facts, response),
    }
}

/// [`explain`] for a claimant whose cached versions are known.
pub fn explain_for(case: &Case<'_>, response: &ResponseFacts<'_>) -> Explanation {
    let decision = decide_for(case, Behaviour::default(), &mut Scratch::default());
    report(case, &decision, response)
}

/// The explanation of a decision that was made about a case. Only the policy's networks count as
/// proof; the caller adds what it knows of other proofs (`proof`, `doubt`, `evidence`) and of
/// hosts.
pub fn report(case: &Case<'_>, decision: &Decision, response: &ResponseFacts<'_>) -> Explanation {
    let site = &*case.claimant.entry.site;
    let facts = &case.facts;
    let crawler = crawler_report(decision.claim, case.registry, Some(site));
    let (lines, taken_away, taken_by) = tag_lines(site, decision, response);
    let token = crawler.as_ref().and_then(|crawler| crawler.token.clone());
    let action = action_report(decision.action, site);
    let observed = PassReason::of(decision, site);
    Explanation {
        site: Some(site.name.clone()),
        host: String::from_utf8_lossy(facts.host).into_owned(),
        target: String::from_utf8_lossy(facts.target).into_owned(),
        crawler,
        identity: facts.identity,
        suspended: facts.identity == Identity::Suspended,
        proof: if matches!(facts.identity, Identity::Verified | Identity::Impostor) {
            Proof::Networks
        } else {
            Proof::None
        }
        .name(),
        doubt: None,
        requested_hosts: None,
        evidence: evidence_of_policy(site, decision.claim, facts.client)
            .into_iter()
            .collect(),
        group: decision.rule.map(|rule| GroupReport {
            agents: site.document.groups[usize::from(rule.group)].agents.clone(),
        }),
        rule: rule_report(decision, site),
        verdict: decision.verdict,
        readings: decision.readings,
        kind: decision.kind,
        never_fetched: decision.never_fetched,
        history: decision.is_in_doubt().then_some(case.cached_versions.basis),
        older_until: case
            .cached_versions
            .older_until
            .filter(|_| decision.is_in_doubt()),
        action: ActionReport {
            would: decision
                .would
                .map(|would| Box::new(action_report(would, site))),
            ..action
        },
        observed,
        to_enforce: match observed {
            Some(PassReason::Unlisted) => lines_to_enforce(case, decision.claim, site),
            _ => Vec::new(),
        },
        signals: signal_lines(decision, site),
        effective: effective(&lines, token),
        x_robots_tag: lines,
        taken_away,
        taken_by,
        version: Some(site.robots_txt.version.to_string()),
        robots_txt_unavailable_until: site
            .robots_txt
            .awaits_origin_until
            .filter(|until| facts.now < *until),
    }
}

/// The explanation of a request for a host that no site has: it is forwarded, and the response
/// passes untouched.
pub fn report_unclaimed(
    registry: &Registry,
    facts: &Facts<'_>,
    response: &ResponseFacts<'_>,
) -> Explanation {
    let claim = claim_of(&String::from_utf8_lossy(facts.user_agent), registry, None);
    let crawler = crawler_report(claim, registry, None);
    let token = crawler.as_ref().and_then(|crawler| crawler.token.clone());
    Explanation {
        host: String::from_utf8_lossy(facts.host).into_owned(),
        target: String::from_utf8_lossy(facts.target).into_owned(),
        crawler,
        identity: facts.identity,
        proof: Proof::None.name(),
        action: ActionReport {
            kind: Action::Pass.name(),
            ..ActionReport::default()
        },
        effective: effective(response.origin_tags, token),
        x_robots_tag: response.origin_tags.to_vec(),
        ..Explanation::default()
    }
}

/// The lines of a policy that let the bot be refused: one with its name, if it has a name that a
/// policy can have and by which the bot would be found, and one for all unlisted bots.
fn lines_to_enforce(case: &Case<'_>, claim: Claim, site: &Site) -> Vec<String> {
    let registry = case.registry;
    let name = match claim {
        Claim::Known(index) => {
            let crawler = registry.get(index);
            Some(crawler.tokens.first().unwrap_or(&crawler.id).as_str())
        }
        Claim::Token(index) => site.tokens.token(index),
        Claim::Other | Claim::Tool | Claim::Nobody => {
            let user_agent = case.facts.user_agent;
            product_name(user_agent).filter(|name| {
                let alone = SiteMarkers::new(vec![(*name).to_owned()]);
                may_be_enforced(name, registry)
                    && registry.identify_with(user_agent, &alone) == Claim::Token(0)
            })
        }
    };
    let for_one = name.map(line_for_one).into_iter();
    for_one.chain([LINE_FOR_ALL.to_owned()]).collect()
}

/// The rule that decided, with its place.
fn rule_report(decision: &Decision, site: &Site) -> Option<RuleReport> {
    let deciding = decision.rule?;
    let (rule, source) = site.rule(deciding.group, deciding.rule?)?;
    let (source, span) = source_place(source, site);
    let kind = if rule.allow { "allow" } else { "disallow" };
    Some(RuleReport {
        kind,
        pattern: rule.pattern.as_str().to_owned(),
        source,
        span,
    })
}

/// The lines of X-Robots-Tag that the client receives, the origin's lines that it does not, and the
/// reason for that (empty where there are none). crawlgate's own answers have no lines of the
/// origin.
fn tag_lines(
    site: &Site,
    decision: &Decision,
    response: &ResponseFacts<'_>,
) -> (Vec<String>, Vec<String>, &'static str) {
    // An answer that crawlgate makes itself is text, whatever the page would have been. The origin
    // has no part in it.
    let theirs = if decision.action == Action::Pass {
        response.origin_tags
    } else {
        &[]
    };
    let status = action_report(decision.action, site)
        .status
        .unwrap_or(response.status);
    let content_type = match decision.action {
        Action::Pass => response.content_type,
        Action::RobotsTxt => Some("text/plain"),
        Action::TdmRep => Some("application/json"),
        Action::Block(_) | Action::Slow { .. } | Action::Pause { .. } | Action::License { .. } => {
            Some("text/html")
        }
    };
    if site.tags.is_hidden(&decision.path_rules, status) {
        let taken_by = if theirs.is_empty() {
            ""
        } else {
            "a 304 does not say which rules hold"
        };
        return (Vec::new(), theirs.to_vec(), taken_by);
    }
    let ours = site.tags.tags(
        &decision.path_rules,
        status,
        content_type.map(str::as_bytes),
    );
    match combine(
        ours.as_deref(),
        theirs.iter().map(String::as_bytes),
        site.origin_tags,
    ) {
        Sent::Added([]) => (theirs.to_vec(), Vec::new(), ""),
        Sent::Added(lines) => {
            let mut all: Vec<String> = theirs.iter().chain(lines).cloned().collect();
            all.sort_by_key(|line| place_of(line.as_bytes()));
            (all, Vec::new(), "")
        }
        Sent::Instead(lines) => match ours
            .as_ref()
            .and_then(|ours| ours.origin_tags)
            .unwrap_or(site.origin_tags)
        {
            OriginTags::Strip => (lines.into_owned(), theirs.to_vec(), "`origin_tags: strip`"),
            OriginTags::Replace => (
                lines.into_owned(),
                theirs.to_vec(),
                "`origin_tags: replace`",
            ),
            OriginTags::Keep | OriginTags::Merge => (lines.into_owned(), Vec::new(), ""),
        },
    }
}

/// The header lines about the use of the content. crawlgate's own answers have none, but the one
/// that demands a licence links it.
fn signal_lines(decision: &Decision, site: &Site) -> Vec<String> {
    match decision.action {
        Action::Pass => site
            .signals
            .fields(decision.signals)
            .map(|(name, value)| format!("{name}: {value}"))
            .collect(),
        Action::License { .. } => {
            let license = site
                .signals
                .license(decision.signals, decision.rule.map(|rule| rule.group));
            license
                .map(|license| format!("Link: {}", license.link))
                .into_iter()
                .collect()
        }
        Action::Block(_)
        | Action::Slow { .. }
        | Action::Pause { .. }
        | Action::RobotsTxt
        | Action::TdmRep => Vec::new(),
    }
}

/// What these lines of X-Robots-Tag tell Googlebot, Bingbot, every bot that a line names, and the
/// bot that asks (`asks` is its token), each once; and last any other bot (`*`).
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
    let reports = bots.into_iter().map(|bot| {
        let directives = tags.effective(&bot);
        EffectiveReport {
            directives: directives.iter().map(ToString::to_string).collect(),
            bot,
        }
    });
    reports.collect()
}

/// The crawler of a claim. The purpose that the policy gives it comes before the registry's. `None`
/// for a person, and for a token without the site whose token it is.
fn crawler_report(claim: Claim, registry: &Registry, site: Option<&Site>) -> Option<CrawlerReport> {
    let id = claim_label(claim, registry, site)?.to_owned();
    let described = |token: &str| site?.policy.described_crawler(token)?.purpose;
    Some(match claim {
        Claim::Known(index) => {
            let crawler = registry.get(index);
            CrawlerReport {
                id,
                name: crawler.name.clone(),
                operator: Some(crawler.operator.clone()),
                token: crawler.tokens.first().cloned(),
                purpose: crawler
                    .tokens
                    .first()
                    .and_then(|token| described(token))
                    .unwrap_or(crawler.purpose)
                    .name(),
                makes_no_requests: crawler.markers.is_empty(),
            }
        }
        Claim::Token(_) => {
            let purpose = described(&id).unwrap_or(Purpose::Other).name();
            CrawlerReport {
                name: id.clone(),
                token: Some(id.clone()),
                id,
                purpose,
                ..CrawlerReport::default()
            }
        }
        Claim::Tool => CrawlerReport {
            id,
            name: "a program that no list knows".into(),
            purpose: "tool",
            ..CrawlerReport::default()
        },
        Claim::Other | Claim::Nobody => CrawlerReport {
            id,
            name: "a bot that no list knows".into(),
            purpose: "other",
            ..CrawlerReport::default()
        },
    })
}

/// An action as the site answers it. Does not allocate.
pub fn action_report(action: Action, site: &Site) -> ActionReport {
    let answer = match action {
        Action::Block(answer) | Action::Slow { answer, .. } => {
            site.answers.get(usize::from(answer))
        }
        _ => None,
    };
    let status = match action {
        Action::Pass => None,
        Action::RobotsTxt | Action::TdmRep => Some(200),
        Action::License { status } => Some(status),
        Action::Pause { .. } => Some(503),
        Action::Block(_) | Action::Slow { .. } => answer.map(|answer| answer.status),
    };
    let retry_after = match action {
        Action::Pause { retry_after } | Action::Slow { retry_after, .. } => Some(retry_after),
        Action::Block(_) => answer.and_then(|answer| answer.retry_after),
        _ => None,
    };
    ActionReport {
        kind: action.name(),
        status,
        retry_after,
        would: None,
    }
}
