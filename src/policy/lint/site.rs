//! Lints of a whole site and its policy, beyond the lines of robots.txt. Some of these lints are
//! interlocks: they reject a policy if it could cost the site its place in search engines. The
//! other lints check pauses, answers, names of crawlers and proof of identity. They also report
//! rules of the origin's robots.txt that are left out when that file is merged with the policy.

use super::agents;
use super::catalogue as lints;
use super::closed::{closes_site_to_googlebot, engine_takes_name, extent_text};
use crate::crawlers::{Registry, is_generic_bot_name, is_visitor_word};
use crate::indexing::RobotsTags;
use crate::policy::model::{
    Acknowledgement, EnforcementMode, Environment, PauseSchedule, UnverifiedTreatment,
};
use crate::policy::planned_pause::LONG_PAUSE;
use crate::policy::site::{DroppedRule, RuleSource, SEARCH_ENGINES, Site};
use crate::robots::{BlanketDisallow, PathPattern, Rule, TargetScratch, blanket_disallow};
use crate::yaml::{Diagnostics, Located, Severity, SourceSpan, is_beginning};
use std::time::Duration;

use Severity::*;

/// Checks a site, except for [`lint_previous`].
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    lint_site_disallowed(site, registry, diagnostics);
    lint_site_noindex(site, diagnostics);
    lint_pauses(site, diagnostics);
    lint_permanent_errors(site, registry, diagnostics);
    lint_unknown_agents(site, registry, diagnostics);
    lint_unverified_refused(site, diagnostics);
    lint_markers(site, diagnostics);
    lint_unmatched_tokens(site, registry, diagnostics);
    lint_dropped_rules(site, diagnostics);
}

/// Reports each rule of the origin that is left out, at the rule of the policy that is the reason.
fn lint_dropped_rules(site: &Site, diagnostics: &mut Diagnostics) {
    let mut found = Diagnostics::default();
    for DroppedRule { rule, line, by } in &site.dropped_rules {
        let message = format!("\"{rule}\", line {line} of the origin's robots.txt, is left out");
        if !rule.allow {
            let finding = lints::ORIGIN_DISALLOW_LEFT_OUT.finding(*by, message);
            found.push(
                finding
                    .label("this rule overrides it")
                    .help("if the site is to stay closed, remove this rule"),
            );
            continue;
        }
        let finding = lints::ORIGIN_ALLOW_LEFT_OUT.finding(*by, message);
        found.push(finding.label("it could override this rule").help(format!(
            "if this is to stay open, write it in the policy: \"allow: ['{}']\"",
            rule.pattern.as_str().replace('\'', "''")
        )));
    }
    super::add_limited(found, diagnostics);
}

/// How much of the site is closed to a crawler, and the source of the rule that closes it.
/// The rules are those of all groups that the crawler follows by name, else of the group that binds
/// it.
pub fn closed_extent_for<'s>(
    site: &'s Site,
    engine: &str,
    registry: &Registry,
) -> Option<(BlanketDisallow, &'s RuleSource)> {
    let groups = site.document.groups.iter().enumerate();
    let named = groups.filter(|(_, group)| {
        group
            .agents
            .iter()
            .any(|agent| engine_takes_name(engine, agent))
    });
    let mut groups: Vec<usize> = named.map(|(index, _)| index).collect();
    if groups.is_empty() {
        let rules = site.crawler_rules(site.claim_of(engine, registry));
        groups.extend(rules.binding.group());
    }
    let rules = groups.iter().flat_map(|&group| {
        site.matcher
            .rules(group)
            .rules()
            .iter()
            .zip(&site.rule_sources[group])
    });
    let (rules, sources): (Vec<&Rule>, Vec<&RuleSource>) = rules.unzip();
    let closed = blanket_disallow(&rules)?;
    Some((closed, sources[closed.rule]))
}

/// An interlock: reports a production site that is closed to Googlebot. Other search engines, and
/// parts of the site, are warnings. Each rule is reported once.
fn lint_site_disallowed(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    if site.policy.environment != Environment::Production
        || site.policy.acknowledges(Acknowledgement::SiteDisallowed)
    {
        return;
    }
    let mut shown: Vec<&RuleSource> = Vec::new();
    for engine in SEARCH_ENGINES {
        let Some((closed, source)) = closed_extent_for(site, engine, registry) else {
            continue;
        };
        if shown.contains(&source) {
            continue;
        }
        shown.push(source);
        let what = extent_text(closed.part);
        let is_refused = closes_site_to_googlebot(engine, closed);
        let lint = if is_refused {
            lints::SITE_DISALLOWED
        } else {
            lints::SITE_PARTLY_CLOSED
        };
        let mut help = "if that is meant, write \"acknowledge: [site_disallowed]\"".to_owned();
        if let (RuleSource::Origin(line), Some(origin)) = (source, &site.origin) {
            let message = format!(
                "the origin's own file keeps {engine} off {what}: {}",
                origin.line_location(*line)
            );
            help += "; or \"robots: { origin: replace }\"";
            lint.report(diagnostics, None, message, help);
            continue;
        }
        let mut finding = lint.finding(source.span(), format!("this keeps {engine} off {what}"));
        if is_refused {
            finding = finding.label("search engines will drop the site");
            help += "; for a test site write \"environment: staging\"";
        }
        diagnostics.push(finding.help(help));
    }
}

/// An interlock: reports a production site whose front page has a noindex for a search engine, or
/// an `unavailable_after` that has passed.
fn lint_site_noindex(site: &Site, diagnostics: &mut Diagnostics) {
    if site.policy.environment != Environment::Production
        || site.policy.acknowledges(Acknowledgement::SiteNoindex)
    {
        return;
    }
    let mut scratch = TargetScratch::default();
    let selected = site.tags.for_path(scratch.normalise(b"/"), &mut Vec::new());
    let Some(lines) = site.tags.tags(&selected, 200, Some(b"text/html")) else {
        return;
    };
    let engine = SEARCH_ENGINES
        .into_iter()
        .find(|engine| forbids_indexing(&lines.tags, engine, site));
    let Some(engine) = engine else { return };
    // The finding points at a rule of `indexing` that may be the reason, else at an entry of
    // `retire`.
    let rule = site.policy.indexing.iter().find(|rule| {
        let types = &rule.when.types;
        forbids_indexing(&rule.tags, engine, site)
            && types
                .iter()
                .all(|media| ["text/html", "text/*"].contains(&media.as_str()))
    });
    let mut retired_paths = site.policy.retire.iter().flat_map(|retired| &retired.paths);
    let span = match rule {
        Some(rule) => Some(rule.span),
        None => retired_paths
            .find(|path| PathPattern::new(path).matches(b"/"))
            .map(|path| path.span),
    };
    let message = if lines.tags.effective(engine).forbids_indexing() {
        "this says noindex for the front page of a production site"
    } else {
        "this date has passed, so Google drops the front page of a production site"
    };
    diagnostics.push(
        lints::SITE_NOINDEX
            .finding(span.unwrap_or_default(), message)
            .label("search engines will drop the site")
            .help(
                "if that is meant, write \"acknowledge: [site_noindex]\". Otherwise narrow it: \
                 \"paths\" without the front page, or \"types\" without text/html",
            ),
    );
}

/// Reports pauses that are over, that are too long (an interlock), or whose length cannot be
/// checked because they have no beginning. Recurring pauses are never too long.
fn lint_pauses(site: &Site, diagnostics: &mut Diagnostics) {
    for pause in &site.policy.pauses {
        let PauseSchedule::Once { from, until } = pause.schedule else {
            continue;
        };
        if let Some(end) = until.filter(|end| *end <= site.at) {
            lints::PAST_PAUSE.report(
                diagnostics,
                pause.span,
                format!("this pause ended {end}, so it has no effect"),
                "remove it, or correct the time",
            );
        }
        if site.policy.acknowledges(Acknowledgement::LongPause) {
            continue;
        }
        if from.is_none() && until.is_some() {
            lints::PAUSE_WITHOUT_FROM.report(
                diagnostics,
                pause.span,
                "without \"from\" this pause ends at most 36 hours after the policy comes into \
                 force",
                "write \"from\", so that crawlgate can check the length; or \"acknowledge: \
                 [long_pause]\"",
            );
        }
        if from
            .zip(until)
            .is_some_and(|(from, until)| until.since(from) > LONG_PAUSE)
        {
            diagnostics.push(
                lints::LONG_PAUSE
                    .finding(pause.span, "this pause is longer than 36 hours")
                    .label("search engines drop URLs that answer 503 for two days")
                    .help("if that is meant, write \"acknowledge: [long_pause]\""),
            );
        }
    }
}

/// Reports 5xx or 429 for Googlebot on disallowed paths, if enforcement is on.
fn lint_permanent_errors(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let rules = site.crawler_rules(site.claim_of(SEARCH_ENGINES[0], registry));
    let status = site
        .answers
        .get(usize::from(rules.disallowed))
        .map_or(403, |answer| answer.status);
    if rules.mode == EnforcementMode::Enforce && (status >= 500 || status == 429) {
        lints::PERMANENT_ERROR.report(
            diagnostics,
            None,
            format!("on disallowed paths search crawlers get {status} permanently"),
            "they slow down for the whole host and drop its URLs after two days. For a permanent \
             answer use 403 or 404",
        );
    }
}

/// An interlock: reports markers in `crawlers` that are found in the user agents of people, who
/// would be judged as a crawler.
fn lint_markers(site: &Site, diagnostics: &mut Diagnostics) {
    if site.policy.acknowledges(Acknowledgement::BlocksPeople) {
        return;
    }
    let markers = site
        .policy
        .crawlers
        .iter()
        .flat_map(|described| &described.user_agent);
    for marker in markers.filter(|marker| is_visitor_word(marker.as_bytes())) {
        let message = format!(
            "\"{}\" is part of the user agents of browsers or apps",
            marker.value
        );
        diagnostics.push(
            lints::BLOCKS_PEOPLE
                .finding(marker.span, message)
                .label("crawlgate would take visitors for a crawler")
                .help(
                    "write a text that only this crawler has in its user agent. To block an app, \
                 write \"acknowledge: [blocks_people]\"",
                ),
        );
    }
}

/// Reports tokens that match no request: words for bots in general (an error; those of groups are
/// reported elsewhere), agents that send a browser's user agent, and tokens that are found in
/// people's user agents, unless `crawlers` gives them a marker.
fn lint_unmatched_tokens(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let policy = &site.policy;
    let described = policy.crawlers.iter().map(|described| &described.token);
    let named = policy.enforcement.named_crawlers().chain(described);
    for agent in named
        .clone()
        .filter(|agent| is_generic_bot_name(agent.as_bytes()))
    {
        agents::report_generic_token(agent, agent.span, Error, diagnostics);
    }
    let groups = policy.robots.groups.iter().flat_map(|group| &group.agents);
    for agent in groups.chain(named) {
        let described = policy.crawler_description(agent);
        if described.is_some_and(|described| !described.user_agent.is_empty()) {
            continue;
        }
        let known = registry.find_crawler(agent);
        if known.is_some_and(|known| known.signs.is_some() && known.user_agent.is_none()) {
            lints::TOKEN_MATCHES_NO_REQUEST.report(
                diagnostics,
                agent.span,
                format!(
                    "\"{}\" signs its requests and sends the user agent of a browser: they count \
                     as a visitor's",
                    agent.value
                ),
                "nothing needs to be done; the agent obeys the rule only if it reads robots.txt",
            );
        }
        if agents::is_in_browser_agents(agent, registry) {
            let help = "if a crawler has this token, nothing needs to be done. To block the app, \
                        describe it in \"crawlers\" with a \"user_agent\", and write \
                        \"acknowledge: [blocks_people]\"";
            let mut enforced = policy.enforcement.agents.iter();
            let severity = if enforced.any(|(enforced, _)| enforced.span == agent.span) {
                Warning
            } else {
                Note
            };
            agents::report_unmatched_token(agent, agent.span, severity, help, diagnostics);
        }
    }
}

/// Reports unknown names under `enforcement`: a probable misspelling is an error, the beginning of a
/// token a warning, any other a note.
fn lint_unknown_agents(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    for agent in site.policy.enforcement.named_crawlers() {
        let name = &agent.value;
        let is_of_policy_only =
            site.tokens.token_claim(name).is_some() && !is_generic_bot_name(name.as_bytes());
        let is_said = site.matcher.named_group(name).is_some()
            || site.policy.crawler_description(name).is_some();
        if !is_of_policy_only || is_said {
            continue;
        }
        let message = format!("no known crawler is called \"{name}\"");
        let misspelt = agents::nearest_token(name, registry);
        let longer = registry.tokens().find(|token| is_beginning(name, token));
        let severity = match (misspelt, longer) {
            (Some(_), _) => Error,
            (None, Some(_)) => Warning,
            (None, None) => Note,
        };
        let help = match misspelt.or(longer) {
            Some(near) => format!(
                "did you mean \"{near}\"? If \"{name}\" is a crawler of your own, write \"crawlers: \
                 [{{ token: {name} }}]\""
            ),
            None => "crawlgate looks for this name in user agents exactly as written; \"crawlgate \
                     crawlers\" lists the known names"
                .into(),
        };
        lints::UNKNOWN_CRAWLER.with_severity(severity).report(
            diagnostics,
            agent.span,
            message,
            help,
        );
    }
}

/// Reports `unverified: refuse` for crawlers without `networks`. Only the settings know of other
/// proof: [`remove_provable_findings`].
fn lint_unverified_refused(site: &Site, diagnostics: &mut Diagnostics) {
    let policy = &site.policy;
    let enforcement = &policy.enforcement;
    let unprovable_agents = enforcement.agents.iter().filter(|(agent, _)| {
        let described = policy.crawler_description(agent);
        described.is_none_or(|described| described.networks.is_empty())
    });
    let sections = unprovable_agents
        .map(|(_, fields)| fields)
        .chain(enforcement.purposes.values())
        .chain([&enforcement.site]);
    for fields in sections {
        if let Some(Located {
            value: UnverifiedTreatment::Refuse,
            span,
        }) = fields.unverified
        {
            diagnostics.push(
                lints::UNVERIFIED_REFUSED
                    .finding(
                        span,
                        "this also blocks crawlers that cannot be verified. crawlgate can verify those \
                         with \"networks\" under \"crawlers\". If \"identity\" in the settings allows \
                         it, crawlgate can also verify those whose operators publish addresses or names",
                    )
                    .label("a search engine that is not verified is blocked, too")
                    .help(
                        "write \"unverified: as_claimed\", or list the \"networks\" of the \
                         crawlers that may come. \"crawlgate check --config crawlgate.yaml\" \
                         knows the settings",
                    ),
            );
        }
    }
}

/// Removes findings about `unverified: refuse`, for a server whose settings allow proof by what
/// operators publish (addresses, names in DNS, signatures). Findings for a named crawler without
/// such proof stay.
pub fn remove_provable_findings(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let mut refused: Vec<Option<SourceSpan>> = Vec::new();
    for (agent, fields) in &site.policy.enforcement.agents {
        let crawler = registry.find_crawler(agent);
        let is_provable = crawler.is_some_and(|crawler| {
            !crawler.ips.is_empty() || !crawler.rdns.is_empty() || crawler.signs.is_some()
        });
        if let Some(unverified) = &fields.unverified
            && !is_provable
        {
            refused.push(Some(unverified.span));
        }
    }
    diagnostics.items.retain(|found| {
        found.id != lints::UNVERIFIED_REFUSED.id
            || found.span.is_some() && refused.contains(&found.span)
    });
}

/// Whether these tags forbid indexing now.
fn forbids_indexing(tags: &RobotsTags, engine: &str, site: &Site) -> bool {
    tags.effective(engine).forbids_indexing_at(site.at)
}

/// How long crawlers use a copy (RFC 9309 section 2.4).
const DAY: Duration = Duration::from_secs(86_400);

/// Suggests `previous: origin` where the origin's robots.txt has not changed for a day, by its
/// Last-Modified.
pub fn lint_previous(site: &Site, diagnostics: &mut Diagnostics) {
    let Some(modified) = site.origin.as_ref().and_then(|origin| origin.last_modified) else {
        return;
    };
    if site.policy.robots.previous.is_some()
        || !site.policy.reads_origin()
        || site.at.since(modified) < DAY
    {
        return;
    }
    lints::PREVIOUS_UNDECLARED.report(
        diagnostics,
        None,
        format!("the origin says that its robots.txt has not changed since {modified}"),
        "if every host of the site has served this file since then, caches included, write \
         \"robots: { previous: origin }\". Violations then count from the first minute. The date \
         alone is no proof",
    );
}
