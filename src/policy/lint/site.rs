//! Lints that only a policy can have. Interlocks are errors, against mistakes that cost a site its
//! place in search. Others check answers, names of crawlers, proof of identity, the origin's file,
//! selectors and the environment.

use super::agents;
use super::catalogue as lints;
use super::closed::{is_named, kept_off, shuts_out};
use crate::crawlers::{Claim, Registry, is_generic, is_of_people};
use crate::indexing::Tags;
use crate::policy::model::{
    Acknowledgement, Environment, HostPattern, Mode, PauseTime, Unverified,
};
use crate::policy::site::{RuleSource, SEARCH_ENGINES, Site};
use crate::robots::{Closed, Pattern, Rule, TargetScratch, closed};
use crate::yaml::{Diagnostics, Located, Severity, Span};

use std::time::Duration;

/// Beyond two days of 503 search engines drop URLs (Google: reduce the crawl rate); half a day is
/// kept in hand.
const LONG_PAUSE: Duration = Duration::from_secs(36 * 3_600);

/// Reports the mistakes that only a policy can have, each by a function of this file.
/// `surroundings` and `previous` are not among them: the caller calls these itself.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    site_disallowed(site, registry, diagnostics);
    site_noindex(site, diagnostics);
    long_pauses(site, diagnostics);
    permanent_errors(site, registry, diagnostics);
    unknown_agents(site, registry, diagnostics);
    refusing_the_unverified(site, diagnostics);
    markers_of_people(site, diagnostics);
    tokens_without_requests(site, registry, diagnostics);
    allows_left_out(site, diagnostics);
    networks_of_everybody(site, diagnostics);
}

/// Reports each Allow of the origin that is left out because of a rule of the policy, at that rule;
/// of many only the first few.
fn allows_left_out(site: &Site, diagnostics: &mut Diagnostics) {
    let mut found = Diagnostics::default();
    for left_out in &site.left_out {
        let allow = left_out.allow.as_str();
        let line = left_out.line;
        let message =
            format!("`Allow: {allow}` in line {line} of the origin's robots.txt is left out");
        let finding = lints::ORIGIN_ALLOW_LEFT_OUT.at(left_out.disallow, message);
        found.push(finding.label("it could defeat this rule").help(format!(
            "what is to stay open belongs into the policy: `allow: [{allow:?}]`"
        )));
    }
    super::add_limited(found, diagnostics);
}

fn acknowledged(site: &Site, what: Acknowledgement) -> bool {
    site.policy
        .acknowledge
        .iter()
        .any(|item| item.value == what)
}

/// What the rules for a search engine close, and the source of the rule that does. The rules are
/// those of all groups whose names the engine takes for its own, else of the group that binds it.
/// `None` where nothing that matters is closed, or the registry does not know the engine.
fn closed_to<'s>(
    site: &'s Site,
    engine: &str,
    registry: &Registry,
) -> Option<(Closed, &'s RuleSource)> {
    let groups = site.document.groups.iter().enumerate();
    let named =
        groups.filter(|(_, group)| group.agents.iter().any(|agent| is_named(engine, agent)));
    let mut groups: Vec<usize> = named.map(|(index, _)| index).collect();
    if groups.is_empty() {
        let binding = site
            .crawler_rules(Claim::Known(registry.find(engine)?))
            .binding;
        groups.extend(binding.group().map(usize::from));
    }
    let rules = groups.iter().flat_map(|&group| {
        site.matcher
            .rules(group)
            .rules()
            .iter()
            .zip(&site.rule_sources[group])
    });
    let (rules, sources): (Vec<&Rule>, Vec<&RuleSource>) = rules.unzip();
    let closed = closed(&rules)?;
    Some((closed, sources[closed.rule]))
}

/// An interlock: reports a production site that keeps Googlebot off everything, unless the policy
/// acknowledges it. Other search engines, and parts of the site, are warnings. At most one finding
/// for each engine, about the rule that decides; none if that was reported for an engine before.
fn site_disallowed(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    if site.policy.environment != Environment::Production
        || acknowledged(site, Acknowledgement::SiteDisallowed)
    {
        return;
    }
    let mut shown: Vec<&RuleSource> = Vec::new();
    for engine in SEARCH_ENGINES {
        let Some((closed, source)) = closed_to(site, engine, registry) else {
            continue;
        };
        if shown.contains(&source) {
            continue;
        }
        shown.push(source);
        let what = kept_off(closed.extent);
        let is_refused = shuts_out(engine, closed);
        let lint = if is_refused {
            lints::SITE_DISALLOWED
        } else {
            lints::SITE_PARTLY_CLOSED
        };
        let mut help = "if that is meant, write `acknowledge: [site_disallowed]`".to_owned();
        if let (RuleSource::Origin(line), Some(origin)) = (source, &site.origin) {
            let message = format!(
                "the origin's own file keeps {engine} off {what}: {}",
                origin.place(*line)
            );
            help += "; or `robots: { origin: replace }`";
            lint.report(diagnostics, None, message, help);
            continue;
        }
        let mut finding = lint.at(source.span(), format!("this keeps {engine} off {what}"));
        if is_refused {
            finding = finding.label("the site will drop out of search");
            help += "; for a test site, `environment: staging`";
        }
        diagnostics.push(finding.help(help));
    }
}

/// An interlock: reports a production site whose front page says noindex to a search engine, or an
/// `unavailable_after` that has passed, unless the policy acknowledges it. The place is that of a
/// rule of `indexing` that may say so, else of `retire`.
fn site_noindex(site: &Site, diagnostics: &mut Diagnostics) {
    if site.policy.environment != Environment::Production
        || acknowledged(site, Acknowledgement::SiteNoindex)
    {
        return;
    }
    let mut scratch = TargetScratch::default();
    let selected = site.tags.for_path(scratch.normalise(b"/"), &mut Vec::new());
    let Some(lines) = site.tags.tags(&selected, 200, Some(b"text/html")) else {
        return;
    };
    // A date that has passed comes to the same.
    let engine = SEARCH_ENGINES
        .into_iter()
        .find(|engine| forbids_indexing(&lines.tags, engine, site));
    let Some(engine) = engine else { return };
    // The place is known of a rule without conditions on the response, or with conditions that a
    // page meets.
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
            .find(|path| Pattern::new(path).matches(b"/"))
            .map(|path| path.span),
    };
    let message = if lines.tags.effective(engine).forbids_indexing() {
        "this says noindex on the front page of a production site"
    } else {
        "this date has passed, and the front page of a production site is not to be found after it"
    };
    diagnostics.push(
        lints::SITE_NOINDEX
            .at(span.unwrap_or_default(), message)
            .label("the site will drop out of search")
            .help("if that is meant, write `acknowledge: [site_noindex]`; to mean fewer pages, add `paths` or `types`"),
    );
}

/// Reports planned pauses that are over or longer than 36 hours (an error unless the policy
/// acknowledges it), and those with an end but no beginning, whose length cannot be checked. Pauses
/// that recur are never too long.
fn long_pauses(site: &Site, diagnostics: &mut Diagnostics) {
    for pause in &site.policy.pauses {
        // A span of the day is never too long.
        let PauseTime::Once { from, until } = pause.time else {
            continue;
        };
        // Without an end it begins when it is first seen: that it is over the policy cannot tell.
        if let Some(end) = until.filter(|end| *end <= site.at) {
            lints::PAST_PAUSE.report(
                diagnostics,
                pause.span,
                format!("this pause ended {end}: it pauses nothing"),
                "remove it, or write the time that is meant",
            );
        }
        if acknowledged(site, Acknowledgement::LongPause) {
            continue;
        }
        if from.is_none() && until.is_some() {
            lints::PAUSE_WITHOUT_FROM.report(
                diagnostics,
                pause.span,
                "without `from` this pause ends 36 hours after it came into force, if not before",
                "write `from`, so that its length can be checked; or `acknowledge: [long_pause]`",
            );
        }
        if from
            .zip(until)
            .is_some_and(|(from, until)| until.since(from) > LONG_PAUSE)
        {
            diagnostics.push(
                lints::LONG_PAUSE
                    .at(pause.span, "this pause is longer than 36 hours")
                    .label("search engines drop URLs that stay 503 for two days")
                    .help("if that is meant, write `acknowledge: [long_pause]`"),
            );
        }
    }
}

/// Reports 5xx or 429 for Googlebot on disallowed paths, where enforcement is on: search engines
/// slow down for the whole host and drop the URLs after two days.
fn permanent_errors(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let Some(index) = registry.find(SEARCH_ENGINES[0]) else {
        return;
    };
    let rules = site.crawler_rules(Claim::Known(index));
    let status = site
        .answers
        .get(usize::from(rules.disallowed))
        .map_or(403, |answer| answer.status);
    if rules.mode == Mode::Enforce && (status >= 500 || status == 429) {
        lints::PERMANENT_ERROR.report(
            diagnostics,
            None,
            format!("search crawlers get {status} for good on disallowed paths"),
            "they slow down for the whole host and drop its URLs after two days; 403 or 404 is meant for good",
        );
    }
}

/// An interlock: reports markers in `crawlers` that stand in the user agents of people, unless the
/// policy acknowledges it. People would be judged as a crawler.
fn markers_of_people(site: &Site, diagnostics: &mut Diagnostics) {
    if acknowledged(site, Acknowledgement::BlocksPeople) {
        return;
    }
    let markers = site
        .policy
        .crawlers
        .iter()
        .flat_map(|described| &described.user_agent);
    for marker in markers.filter(|marker| is_of_people(marker.as_bytes())) {
        let message = format!(
            "`{}` stands in the user agents of people's browsers or apps",
            marker.value
        );
        diagnostics.push(
            lints::BLOCKS_PEOPLE.at(marker.span, message).label("people would be taken for a crawler").help(
                "write what stands in the user agent of this crawler only; to block an app, write \
                 `acknowledge: [blocks_people]`",
            ),
        );
    }
}

/// Reports tokens that match no request: words for bots in general under `enforcement` and
/// `crawlers` (an error; the lints of groups report them there), agents that send a browser's user
/// agent, and tokens that stand in people's user agents, unless `crawlers` gives them a marker.
fn tokens_without_requests(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let policy = &site.policy;
    let described = policy.crawlers.iter().map(|described| &described.token);
    for agent in policy
        .enforcement
        .named()
        .chain(described)
        .filter(|agent| is_generic(agent.as_bytes()))
    {
        agents::generic_token(agent, agent.span, Severity::Error, diagnostics);
    }
    let groups = policy.robots.groups.iter().flat_map(|group| &group.agents);
    for agent in groups.chain(policy.enforcement.named()) {
        if policy.described_crawler(agent).is_some() {
            continue;
        }
        let known = registry.named(agent);
        if known.is_some_and(|known| known.signs.is_some() && known.user_agent.is_none()) {
            lints::TOKEN_MATCHES_NO_REQUEST.report(
                diagnostics,
                agent.span,
                format!(
                    "`{}` signs its requests and sends the user agent of a browser: they count as a person's",
                    agent.value
                ),
                "nothing is to be done; the rule binds the agent only if it reads robots.txt",
            );
        }
        if agents::is_name_of_people(agent, registry) {
            let help = "nothing is to be done if a crawler has this token; to block the app, describe it in `crawlers` \
                        with a `user_agent`, and write `acknowledge: [blocks_people]`";
            agents::token_matches_no_request(agent, agent.span, help, diagnostics);
        }
    }
    let alone = policy
        .crawlers
        .iter()
        .filter(|described| described.user_agent.is_empty());
    for token in alone.map(|described| &described.token) {
        if agents::is_name_of_people(token, registry) {
            let help = "write `user_agent`: what stands in the user agent of this crawler only";
            agents::token_matches_no_request(token, token.span, help, diagnostics);
        }
    }
}

/// Reports the first network of a crawler that holds half of all addresses in use: prefixes up to
/// /1 of IPv4 and up to /4 of IPv6. All IPv6 addresses that were ever given out stand in the lower
/// half of 2000::/3 (IANA, IPv6 Global Unicast Address Assignments), but for a block of examples.
fn networks_of_everybody(site: &Site, diagnostics: &mut Diagnostics) {
    for described in &site.policy.crawlers {
        let wide = described.networks.iter().find(|network| {
            let longest = if network.addr().is_ipv4() { 1 } else { 4 };
            network.prefix_len() <= longest
        });
        if let Some(network) = wide {
            diagnostics.push(
                lints::NETWORK_OF_EVERYBODY
                    .at(described.token.span, format!("`{network}` holds half of all addresses in use, or more"))
                    .label("every client of this name is verified")
                    .help("write the networks that its operator publishes; leave `networks` out if there are none"),
            );
        }
    }
}

/// Reports names under `enforcement` that no known crawler, no group and no entry of `crawlers`
/// has. A probable misspelling is a warning, any other name a note.
fn unknown_agents(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    for agent in site.policy.enforcement.named() {
        let name = &agent.value;
        let is_of_policy_only = site.tokens.named(name).is_some() && !is_generic(name.as_bytes());
        let is_said =
            site.matcher.named(name).is_some() || site.policy.described_crawler(name).is_some();
        if !is_of_policy_only || is_said {
            continue;
        }
        let message = format!("no known crawler is called `{name}`");
        match agents::misspelt(name, registry) {
            Some(near) => lints::UNKNOWN_CRAWLER.with(Severity::Warning).report(
                diagnostics,
                agent.span,
                message,
                format!("did you mean `{near}`? It is looked for in user agents as it is written"),
            ),
            None => lints::UNKNOWN_CRAWLER.report(
                diagnostics,
                agent.span,
                message,
                "it is looked for in user agents as it is written; `crawlgate crawlers` lists those that are known",
            ),
        }
    }
}

/// Reports `unverified: refuse` for crawlers that cannot be verified. Without settings only the
/// owner's own lists of addresses prove an identity. [`allow_published_proof`] takes these findings
/// back.
fn refusing_the_unverified(site: &Site, diagnostics: &mut Diagnostics) {
    let policy = &site.policy;
    let enforcement = &policy.enforcement;
    let unprovable_agents = enforcement.agents.iter().filter(|(agent, _)| {
        let described = policy.described_crawler(agent);
        described.is_none_or(|described| described.networks.is_empty())
    });
    let sections = unprovable_agents
        .map(|(_, fields)| fields)
        .chain(enforcement.purposes.values())
        .chain([&enforcement.site]);
    for fields in sections {
        if let Some(Located {
            value: Unverified::Refuse,
            span,
        }) = fields.unverified
        {
            diagnostics.push(
                lints::UNVERIFIED_REFUSED
                    .at(span, "without `identity` in the settings only those of `crawlers` that have `networks` can be verified")
                    .label("everybody else is refused, search engines too")
                    .help("write `unverified: as_claimed`, or list the `networks` of the crawlers that are welcome"),
            );
        }
    }
}

/// Takes back findings of `unverified: refuse`, for a server whose settings allow proof by what
/// operators publish (addresses, names in DNS, signatures). Only findings for a named crawler
/// without such facts stay; those for the site and for purposes go.
pub fn allow_published_proof(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let mut refused: Vec<Option<Span>> = Vec::new();
    for (agent, fields) in &site.policy.enforcement.agents {
        let crawler = registry.named(agent);
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

/// Whether an engine may not index what has these tags, or not any more.
fn forbids_indexing(tags: &Tags, engine: &str, site: &Site) -> bool {
    tags.effective(engine).forbids_indexing_at(site.at)
}

/// How long crawlers use a copy (RFC 9309 section 2.4).
const DAY: Duration = Duration::from_secs(86_400);

/// Suggests `previous: origin` where the origin's Last-Modified says that its robots.txt has not
/// changed for a day (at the moment of compiling), the policy uses that file, and declares no
/// earlier one.
pub fn previous(site: &Site, diagnostics: &mut Diagnostics) {
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
        "if every host of the site served this file all that time, through every cache, write `robots: { previous: origin }`; \
         violations are then certain from the first minute. The date alone does not prove it",
    );
}

/// Parts of host names by which people tell a test site from the site itself.
const OF_TEST_SITES: [&str; 14] = [
    "staging",
    "stage",
    "stg",
    "test",
    "testing",
    "dev",
    "develop",
    "development",
    "preview",
    "preprod",
    "qa",
    "uat",
    "sandbox",
    "beta",
];
/// Top-level domains that are not in public DNS (RFC 6761, RFC 8375): visitors cannot find such a
/// site.
const NOT_PUBLIC: [&str; 4] = ["test", "localhost", "invalid", "local"];

/// Reports hosts that do not fit the policy's environment: a copy of the wrong file closes a site,
/// or opens a test site to search.
pub fn surroundings(site: &Site, diagnostics: &mut Diagnostics) {
    let staging = site.policy.environment == Environment::Staging;
    for host in &site.policy.hosts {
        let name = host.to_string();
        if staging && looks_like_production(host) {
            diagnostics.push(
                lints::STAGING_LOOKS_LIKE_PRODUCTION
                    .at(host.span, format!("`{name}` looks like the site itself, and every page of it says noindex"))
                    .label("a site like this drops out of search")
                    .help("is this the policy of the test site? For the site itself remove `environment: staging`"),
            );
        }
        if !staging && is_public(host) && names_a_test_site(host) {
            lints::PRODUCTION_LOOKS_LIKE_STAGING.report(
                diagnostics,
                host.span,
                format!("`{name}` looks like a test site, and search engines may index it"),
                "write `environment: staging` in a policy of its own for it",
            );
        }
    }
}

/// Whether a host is a name that visitors can find in public DNS: it has a dot, is no IPv4 address,
/// and does not end in a reserved domain.
fn is_public(host: &HostPattern) -> bool {
    let last = host.name.rsplit('.').next().unwrap_or_default();
    host.name.contains('.')
        && !NOT_PUBLIC.contains(&last)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a label before the last two is a word such as `staging`, or has one between hyphens or
/// underscores, perhaps with digits behind it (`test2`).
fn names_a_test_site(host: &HostPattern) -> bool {
    // The last label is a domain of the world, the one before it the name of its owner.
    let labels = host.name.rsplit('.').skip(2);
    labels
        .flat_map(|label| label.split(['-', '_']))
        .any(|part| {
            let word = part.trim_end_matches(|sign: char| sign.is_ascii_digit());
            OF_TEST_SITES.contains(&word)
        })
}

/// Whether a public host is `shop.example` or begins with `www.`, and no label says that it is a
/// test site. Wildcards do not count.
fn looks_like_production(host: &HostPattern) -> bool {
    let labels: Vec<&str> = host.name.split('.').collect();
    is_public(host)
        && !host.wildcard
        && !names_a_test_site(host)
        && !labels[0]
            .split('-')
            .any(|part| OF_TEST_SITES.contains(&part))
        && (labels.len() == 2 || labels[0] == "www")
}
