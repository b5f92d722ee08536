//! [`explain_decision`] adds the reasons to a [`Decision`] about a request, as an [`Explanation`].
//! A decision refers to sites, crawlers and rules by index; this module looks up their names and
//! their lines in the policy. [`explain`] both makes the decision and adds the reasons.

use super::decide::{crawl_delay, decide_for};
use super::decision::{Action, Decision};
use super::explanation::{
    ActionReport, CrawlDelayReport, CrawlerReport, EffectiveReport, Explanation, GroupReport,
    ResponseFacts, RuleReport,
};
use super::identity::{Identity, ProofKind, policy_evidence};
use super::labels::{claim_label, source_location};
use super::unenforced_reason::{ENFORCE_ALL_LINE, UnenforcedReason, enforce_token_line};
use super::{
    CachedVersions, CachedVersionsBasis, DecisionScratch, RecentBehaviour, RequestFacts,
    RequestToJudge, SiteClaim, claim_with_method,
};
use crate::crawlers::{Claim, Purpose, Registry, SiteMarkers, product_name};
use crate::indexing::{TagScope, line_order, parse_lines};
use crate::policy::Snapshot;
use crate::policy::lint::may_be_enforced;
use crate::policy::model::OriginTagsMode;
use crate::policy::site::{Site, TagHeaderEdit, combine_with_origin};
use crate::robots::format_seconds;

use Action::*;
use Claim::*;

/// Decides and gives the reasons, without a ledger: the crawler may have cached every version that
/// was in force within `grace`. The user agent may be the bare token, id or name of a
/// crawler. Where no site has the host, the request is reported as forwarded.
pub fn explain(
    snapshot: &Snapshot,
    registry: &Registry,
    facts: &RequestFacts<'_>,
    basis: CachedVersionsBasis,
    response: &ResponseFacts<'_>,
) -> Explanation {
    match SiteClaim::find_by_name(snapshot, registry, facts) {
        Some(claimant) => {
            let cached_versions = CachedVersions {
                basis,
                ..CachedVersions::for_any_crawler(claimant, facts.now)
            };
            explain_request(
                &RequestToJudge {
                    registry,
                    facts: *facts,
                    claimant,
                    cached_versions,
                },
                response,
            )
        }
        None => explain_unclaimed(registry, facts, response),
    }
}

/// [`explain`] for a claimant whose cached versions are known.
pub fn explain_request(request: &RequestToJudge<'_>, response: &ResponseFacts<'_>) -> Explanation {
    let decision = decide_for(
        request,
        RecentBehaviour::default(),
        &mut DecisionScratch::default(),
    );
    explain_decision(request, &decision, response)
}

/// Explains a decision. Only the policy's networks count as proof; the caller adds other proofs
/// (`proof`, `doubt`, `evidence`) and the requested hosts.
pub fn explain_decision(
    request: &RequestToJudge<'_>,
    decision: &Decision,
    response: &ResponseFacts<'_>,
) -> Explanation {
    let site = &*request.claimant.entry.site;
    let facts = &request.facts;
    let crawler = crawler_report(decision.claim, request.registry, Some(site));
    let (lines, taken_away, removal_reason) = tag_lines(site, decision, response);
    let token = crawler.as_ref().and_then(|crawler| crawler.token.clone());
    let observed = UnenforcedReason::from_decision(decision, site);
    Explanation {
        site: Some(site.name.clone()),
        host: String::from_utf8_lossy(facts.host).into_owned(),
        target: String::from_utf8_lossy(facts.target).into_owned(),
        crawler,
        identity: facts.identity,
        suspended: facts.identity == Identity::Suspended,
        proof: if matches!(facts.identity, Identity::Verified | Identity::Impostor) {
            ProofKind::Networks
        } else {
            ProofKind::None
        }
        .name(),
        doubt: None,
        has_address: facts.client.is_some(),
        requested_hosts: None,
        evidence: policy_evidence(site, decision.claim, facts.client)
            .into_iter()
            .collect(),
        group: decision.rule.map(|rule| GroupReport {
            agents: site.document.groups[rule.group].agents.clone(),
        }),
        rule: rule_report(decision, site),
        verdict: decision.verdict,
        readings: decision.readings,
        kind: decision.kind,
        never_fetched: decision.never_fetched,
        history: decision
            .is_in_doubt()
            .then_some(request.cached_versions.basis),
        older_until: request
            .cached_versions
            .older_until
            .filter(|_| decision.is_in_doubt()),
        action: decision_report(decision, site),
        mode: request
            .claimant
            .rules()
            .mode_for(facts.identity.to_status()),
        observed,
        crawl_delay: crawl_delay_report(request, site),
        to_enforce: match observed {
            Some(UnenforcedReason::Unlisted) => lines_to_enforce(request, decision.claim, site),
            _ => Vec::new(),
        },
        signals: signal_lines(decision, site),
        effective: effective_directives(&lines, token),
        x_robots_tag: lines,
        taken_away,
        tags_depend_on_type: decision.action == Pass
            && site.tags.depends_on_type(&decision.path_rules),
        removal_reason,
        version: Some(site.robots_txt.version.to_string()),
        robots_txt_unavailable_until: site
            .robots_txt
            .awaits_origin_until
            .filter(|until| facts.now < *until),
    }
}

/// Explains a request for a host that no site has: it is forwarded, and its response is not
/// changed.
pub fn explain_unclaimed(
    registry: &Registry,
    facts: &RequestFacts<'_>,
    response: &ResponseFacts<'_>,
) -> Explanation {
    let known = registry.find(&String::from_utf8_lossy(facts.user_agent));
    let claim = known.map_or_else(|| registry.identify(facts.user_agent), Known);
    let claim = claim_with_method(claim, facts.method);
    let crawler = crawler_report(claim, registry, None);
    let token = crawler.as_ref().and_then(|crawler| crawler.token.clone());
    Explanation {
        host: String::from_utf8_lossy(facts.host).into_owned(),
        target: String::from_utf8_lossy(facts.target).into_owned(),
        crawler,
        identity: facts.identity,
        proof: ProofKind::None.name(),
        effective: effective_directives(response.origin_tags, token),
        x_robots_tag: response.origin_tags.to_vec(),
        ..Explanation::default()
    }
}

/// The lines for a policy under which the bot is blocked: one with its name, if a policy can have
/// that name and it identifies the bot, and one for all unknown bots.
fn lines_to_enforce(request: &RequestToJudge<'_>, claim: Claim, site: &Site) -> Vec<String> {
    let registry = request.registry;
    let name = match claim {
        Known(index) => {
            let crawler = registry.get(index);
            Some(crawler.tokens.first().unwrap_or(&crawler.id).as_str())
        }
        PolicyToken(index) => site.tokens.token(index),
        UnknownBot | Tool | Visitor => {
            let user_agent = request.facts.user_agent;
            product_name(user_agent).filter(|name| {
                let alone = SiteMarkers::new(vec![(*name).to_owned()]);
                may_be_enforced(name, registry)
                    && registry.identify_on_site(user_agent, &alone) == PolicyToken(0)
            })
        }
    };
    let for_one = name.map(enforce_token_line).into_iter();
    for_one.chain([ENFORCE_ALL_LINE.to_owned()]).collect()
}

/// The rule that decided, with its location.
fn rule_report(decision: &Decision, site: &Site) -> Option<RuleReport> {
    let deciding = decision.rule?;
    let (rule, source) = site.rule(deciding.group, deciding.rule?)?;
    let (source, span) = source_location(source, site);
    let kind = if rule.allow { "allow" } else { "disallow" };
    Some(RuleReport {
        kind,
        pattern: rule.pattern.as_str().to_owned(),
        source,
        span,
    })
}

/// The crawl delay that binds the crawler, with the decision about a request that comes sooner.
/// `None` if such a request is not slowed down, nor would be.
fn crawl_delay_report(request: &RequestToJudge<'_>, site: &Site) -> Option<CrawlDelayReport> {
    let delay = crawl_delay(request, true)?;
    let group = request.claimant.rules().binding.group()?;
    let source = site.delay_sources.get(group)?.as_ref()?;
    let too_fast = RecentBehaviour {
        too_fast: Some(delay),
        ..RecentBehaviour::default()
    };
    let decision = decide_for(request, too_fast, &mut DecisionScratch::default());
    let is_slowed = |action| matches!(action, Slow { .. });
    (is_slowed(decision.action) || decision.would.is_some_and(is_slowed)).then(|| {
        CrawlDelayReport {
            seconds: format_seconds(delay),
            source: source_location(source, site).0,
            only_after_fetch: !request.cached_versions.is_complete(),
            action: decision_report(&decision, site),
            observed: UnenforcedReason::from_decision(&decision, site),
        }
    })
}

/// The lines of X-Robots-Tag that the client receives, the origin's lines that are taken away, and
/// the reason for that (empty if none are).
fn tag_lines(
    site: &Site,
    decision: &Decision,
    response: &ResponseFacts<'_>,
) -> (Vec<String>, Vec<String>, &'static str) {
    // An answer of crawlgate's own has no lines of the origin, and is not of the page's type.
    let theirs = if decision.action == Pass {
        response.origin_tags
    } else {
        &[]
    };
    let status = action_report(decision.action, site)
        .status
        .unwrap_or(response.status);
    let content_type = match decision.action {
        Pass => response.content_type,
        RobotsTxt => Some("text/plain"),
        Tdmrep => Some("application/json"),
        Block(_) | Slow { .. } | Pause { .. } | License { .. } => Some("text/html"),
    };
    if site.tags.hides_tags(&decision.path_rules, status) {
        let removal_reason = if theirs.is_empty() {
            ""
        } else {
            "a 304 does not show which rules apply"
        };
        return (Vec::new(), theirs.to_vec(), removal_reason);
    }
    let ours = site.tags.tags(
        &decision.path_rules,
        status,
        content_type.map(str::as_bytes),
    );
    match combine_with_origin(
        ours.as_deref(),
        theirs.iter().map(String::as_bytes),
        site.origin_tags,
    ) {
        TagHeaderEdit::Add([]) => (theirs.to_vec(), Vec::new(), ""),
        TagHeaderEdit::Add(lines) => {
            let mut all: Vec<String> = theirs.iter().chain(lines).cloned().collect();
            all.sort_by_key(|line| line_order(line.as_bytes()));
            (all, Vec::new(), "")
        }
        TagHeaderEdit::Replace(lines) => {
            let stated = ours.as_ref().and_then(|ours| ours.origin_tags);
            let (taken_away, removal_reason) = match stated.unwrap_or(site.origin_tags) {
                OriginTagsMode::Strip => (theirs, "\"origin_tags: strip\""),
                OriginTagsMode::Replace => (theirs, "\"origin_tags: replace\""),
                OriginTagsMode::Keep | OriginTagsMode::Merge => ([].as_slice(), ""),
            };
            (lines.into_owned(), taken_away.to_vec(), removal_reason)
        }
    }
}

/// The header lines about the use of the content. crawlgate's own answers have none, but the one
/// that demands a licence links it.
fn signal_lines(decision: &Decision, site: &Site) -> Vec<String> {
    match decision.action {
        Pass => site.signals.lines(decision.signals),
        License { .. } => decision
            .license(site)
            .map(|license| format!("Link: {}", license.link))
            .into_iter()
            .collect(),
        Block(_) | Slow { .. } | Pause { .. } | RobotsTxt | Tdmrep => Vec::new(),
    }
}

/// The directives of these lines of X-Robots-Tag for Googlebot, Bingbot, every bot in them, and the
/// requesting bot (`token`), each once; at last those for any other bot (`*`).
fn effective_directives(lines: &[String], token: Option<String>) -> Vec<EffectiveReport> {
    let tags = parse_lines(lines.iter().map(String::as_bytes));
    let mut bots: Vec<String> = vec!["googlebot".into(), "bingbot".into()];
    let named = tags.iter().filter_map(|(scope, _)| match scope {
        TagScope::All => None,
        TagScope::Bot(name) => Some(name.to_string()),
    });
    for bot in named.chain(token.map(|token| token.to_ascii_lowercase())) {
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
    let described = |token: &str| site?.policy.crawler_description(token)?.purpose;
    Some(match claim {
        Known(index) => {
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
        PolicyToken(_) => {
            let purpose = described(&id).unwrap_or(Purpose::Other).name();
            CrawlerReport {
                name: id.clone(),
                token: Some(id.clone()),
                id,
                purpose,
                ..CrawlerReport::default()
            }
        }
        Tool => CrawlerReport {
            id,
            name: "an unknown program".into(),
            purpose: "tool",
            ..CrawlerReport::default()
        },
        UnknownBot | Visitor => CrawlerReport {
            id,
            name: "an unknown bot".into(),
            purpose: "other",
            ..CrawlerReport::default()
        },
    })
}

/// The action of a decision, with what enforcement would do.
fn decision_report(decision: &Decision, site: &Site) -> ActionReport {
    let would = decision.would.map(|would| action_report(would, site));
    ActionReport {
        would: would.map(Box::new),
        ..action_report(decision.action, site)
    }
}

/// An action as the site answers it. Does not allocate.
pub fn action_report(action: Action, site: &Site) -> ActionReport {
    let answer = |index: u16| site.answers.get(usize::from(index));
    let status = |index: u16| answer(index).map(|answer| answer.status);
    let (status, retry_after) = match action {
        Pass => (None, None),
        RobotsTxt | Tdmrep => (Some(200), None),
        License { status } => (Some(status), None),
        Pause { retry_after } => (Some(503), Some(retry_after)),
        Slow {
            answer,
            retry_after,
        } => (status(answer), Some(retry_after)),
        Block(index) => (
            status(index),
            answer(index).and_then(|answer| answer.retry_after),
        ),
    };
    ActionReport {
        kind: action.kind(),
        status,
        retry_after,
        would: None,
    }
}
