//! Converts a site's policy into an [`ExportedPolicy`], the form from which the configuration of
//! nginx, HAProxy, Caddy or Apache is written. Parts of the policy that no web server can enforce
//! are listed in words.

use super::rules::{
    CrawlerClass, ExportedAnswer, ExportedFile, ExportedPolicy, PathRule, SignalRule, TagCondition,
    TagRule,
};
use crate::crawlers::{
    Claim, CrawlerIndex, Purpose, Registry, is_generic_bot_name, is_visitor_word,
};
use crate::policy::Site;
use crate::policy::model::{
    EnforcementMode, IndexingRule, OriginTagsMode, PauseAudience, PauseSchedule,
    ResponseConditions, StatusCondition, UnverifiedTreatment,
};
use crate::policy::site::{GoogleParsing, SignalField};
use crate::yaml::located_values;

/// The body of a blocking answer if the policy has none.
const DEFAULT_REFUSAL_BODY: &str = "The rules of this site do not allow this crawler to fetch \
                                    this URL.\n\nThe rules of this site for crawlers: \
                                    /robots.txt\n";
const PAUSE_BODY: &str = "This site is temporarily closed to crawlers.\n";
/// Shorter tokens are in the user agents of too many people.
const MIN_TOKEN: usize = 3;
/// What Apple Messages adds to a person's user agent.
const APPLE_MESSAGES: &str = "facebookexternalhit/1.1 Facebot Twitterbot/1.0";

impl CrawlerClass {
    /// Whether no request of its crawlers is blocked.
    fn always_passes(&self) -> bool {
        self.list.is_none() && !self.is_pausable
    }
}

impl ExportedPolicy {
    /// Converts a site's policy. The rest is described in `left_out`.
    pub fn from_site(site: &Site, registry: &Registry) -> ExportedPolicy {
        let mut rules = ExportedPolicy {
            site: site.name.clone(),
            files: exported_files(site),
            signals: site
                .signals
                .fields_by_path()
                .iter()
                .map(to_signal_rule)
                .collect(),
            strips_tags: site.origin_tags == OriginTagsMode::Strip,
            ..ExportedPolicy::default()
        };
        rules.add_pause(site);
        for (index, crawler) in (0..).zip(registry.crawlers()) {
            let mut markers = crawler.markers.clone();
            let described = site
                .policy
                .crawlers
                .iter()
                .filter(|described| crawler.has_name(&described.token.value));
            markers.extend(described.flat_map(|described| located_values(&described.user_agent)));
            let is_tool = crawler.purpose == Purpose::Tool;
            rules.add_crawler(site, Claim::Known(CrawlerIndex(index)), &markers, is_tool);
        }
        let mut without_marker = Vec::new();
        for (index, token) in (0..).zip(site.tokens.tokens()) {
            let markers = token_markers(site, token);
            if markers.is_empty() {
                without_marker.push(format!("\"{token}\""));
            }
            rules.add_crawler(site, Claim::PolicyToken(index), &markers, false);
        }
        if !without_marker.is_empty() {
            let tokens = without_marker.join(", ");
            rules.left_out.push(format!(
                "tokens that also occur in the user agents of browsers or many bots: {tokens}"
            ));
        }
        if site.tokens.tokens().len() > without_marker.len() {
            rules.left_out.push(
                "visitors: a name that only the policy has matches every user agent with it"
                    .to_owned(),
            );
        }
        // A link preview on a person's own device.
        rules.add_crawler(site, Claim::Visitor, &[APPLE_MESSAGES.to_owned()], false);
        rules.drop_passing_classes();
        for rule in &site.policy.indexing {
            match to_tag_rule(rule) {
                Some(tag) => rules.tags.push(tag),
                None => rules.left_out.push(
                    "a rule of \"indexing\" with \"path_regex\": its X-Robots-Tag is missing"
                        .into(),
                ),
            }
        }
        rules
            .left_out
            .extend(unsupported_parts(site).map(str::to_owned));
        rules
    }

    /// Exports the first pause that has begun, does not recur and does not pause robots.txt. The
    /// exported pause has no end.
    fn add_pause(&mut self, site: &Site) {
        let pauses = &site.policy.pauses;
        let pause = pauses.iter().find(|pause| match pause.schedule {
            PauseSchedule::Once { from, .. } => {
                from.is_none_or(|from| from <= site.at) && !pause.pause_robots_txt
            }
            _ => false,
        });
        if pauses.len() > usize::from(pause.is_some()) {
            self.left_out
                .push("a \"pause\" that begins later, recurs, or includes robots.txt".to_owned());
        }
        let Some(pause) = pause else { return };
        self.left_out
            .push("the end of the pause: it lasts until you replace this configuration".to_owned());
        self.pauses_everyone = pause.audience == PauseAudience::Everyone;
        self.pause = Some(ExportedAnswer {
            status: 503,
            retry_after: Some(pause.retry_after.as_secs()),
            body: PAUSE_BODY.to_owned(),
        });
    }

    /// Adds the markers of a crawler to the class that is treated alike, or to a new one. It has a
    /// list of path rules only if robots.txt binds it and the policy enforces that. Longer markers
    /// count before shorter ones, and those of tools last.
    fn add_crawler(&mut self, site: &Site, claim: Claim, markers: &[String], is_tool: bool) {
        if markers.is_empty() {
            return;
        }
        let claim = site.crawler_rules(claim);
        let is_enforced = claim.judged
            && claim.mode == EnforcementMode::Enforce
            && !claim.exempt
            && !claim.unlisted;
        let is_google = claim.google_parsing != GoogleParsing::Unused;
        let group = claim.binding.group().filter(|_| is_enforced);
        let list = group.and_then(|group| self.group_list(site, group, is_google));
        let answer = list.map_or(0, |_| {
            self.answer_index(site, usize::from(claim.disallowed))
        });
        let is_pausable = claim.pausable && self.pause.is_some();
        let last = u32::from(is_tool) * 10_000 + 5_000;
        let markers = markers
            .iter()
            .map(|marker| (last - marker.len().min(5_000) as u32, marker.clone()));
        match self.classes.iter_mut().find(|class| {
            (class.list, class.answer, class.is_pausable) == (list, answer, is_pausable)
        }) {
            Some(class) => class.markers.extend(markers),
            None => self.classes.push(CrawlerClass {
                markers: markers.collect(),
                list,
                is_closed: list.is_some_and(|list| {
                    matches!(self.lists[list].as_slice(), [only] if !only.allow
                        && matches!(only.pattern.as_str(), "/" | "/*" | "*"))
                }),
                answer,
                is_pausable,
            }),
        }
    }

    /// The index in `lists` of a group's rules; `None` without a Disallow. The longest pattern comes
    /// first, and of equals Allow. Google's crawlers also get what Google's parser alone allows.
    fn group_list(&mut self, site: &Site, group: usize, is_google: bool) -> Option<usize> {
        let mut list: Vec<PathRule> = Vec::new();
        for rule in &site.document.groups.get(group)?.rules {
            if rule.pattern.is_empty() {
                continue;
            }
            let directory = rule.google_index_directory().filter(|_| is_google);
            let patterns = std::iter::once(&rule.pattern).chain(&directory);
            list.extend(patterns.map(|pattern| PathRule {
                allow: rule.allow,
                pattern: pattern.as_str().to_owned(),
            }));
        }
        list.sort_by_key(|rule| (std::cmp::Reverse(rule.pattern.len()), !rule.allow));
        (!list.iter().all(|rule| rule.allow)).then(|| index_or_push(&mut self.lists, list))
    }

    /// The index in `answers` of the site's blocking answer at `place`.
    fn answer_index(&mut self, site: &Site, place: usize) -> usize {
        let answer = site.answers.get(place);
        index_or_push(
            &mut self.answers,
            ExportedAnswer {
                status: answer.map_or(403, |answer| answer.status),
                retry_after: answer.and_then(|answer| answer.retry_after).map(u64::from),
                body: answer
                    .and_then(|answer| answer.body.as_deref())
                    .unwrap_or(DEFAULT_REFUSAL_BODY)
                    .to_owned(),
            },
        )
    }

    /// Drops markers of crawlers that always pass, except those that contain a marker of another
    /// class.
    fn drop_passing_classes(&mut self) {
        let blocked: Vec<String> = self
            .classes
            .iter()
            .filter(|class| !class.always_passes())
            .flat_map(|class| &class.markers)
            .map(|(_, marker)| marker_text(marker))
            .collect();
        self.classes.retain_mut(|class| {
            if class.always_passes() {
                class.markers.retain(|(_, marker)| {
                    let text = marker_text(marker);
                    blocked.iter().any(|other| text.contains(other))
                });
            }
            !class.markers.is_empty()
        });
    }
}

/// The markers of a token of the policy: the owner's, else the token itself, unless it is in the user
/// agents of people. Empty if there is none.
fn token_markers(site: &Site, token: &String) -> Vec<String> {
    let described = site
        .policy
        .crawler_description(token)
        .map(|described| located_values(&described.user_agent));
    let is_fit = token.len() >= MIN_TOKEN
        && !is_generic_bot_name(token.as_bytes())
        && !is_visitor_word(token.as_bytes());
    match described.filter(|markers| !markers.is_empty()) {
        Some(markers) => markers,
        None if is_fit => vec![token.clone()],
        None => Vec::new(),
    }
}

/// A marker without `^` and `=`, in lower case.
fn marker_text(marker: &str) -> String {
    marker.trim_start_matches(['^', '=']).to_ascii_lowercase()
}

fn index_or_push<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter()
        .position(|known| *known == item)
        .unwrap_or_else(|| {
            list.push(item);
            list.len() - 1
        })
}

/// robots.txt, and tdmrep.json if the site has one.
fn exported_files(site: &Site) -> Vec<ExportedFile> {
    let robots = ExportedFile {
        path: "/robots.txt",
        media: "text/plain; charset=utf-8",
        cache_control: site.robots_txt.cache_control.clone(),
        body: site.robots_txt.body.to_vec(),
    };
    let tdmrep = site.signals.tdmrep.as_ref().map(|tdmrep| ExportedFile {
        path: "/.well-known/tdmrep.json",
        media: "application/json",
        cache_control: tdmrep.cache_control.clone(),
        body: tdmrep.body.to_vec(),
    });
    std::iter::once(robots).chain(tdmrep).collect()
}

/// The first value without a pattern is for all other paths.
fn to_signal_rule(field: &SignalField<'_>) -> SignalRule {
    let mut values: Vec<String> = Vec::new();
    let mut paths = Vec::new();
    let mut otherwise = None;
    for (pattern, value) in &field.values {
        let place = index_or_push(&mut values, value.to_string());
        match pattern {
            Some(pattern) => paths.push((pattern.as_str().to_owned(), place)),
            None => {
                otherwise = Some(place);
                break;
            }
        }
    }
    let unless: &[&str] = match field.name {
        // Several Link fields may be sent.
        "Link" => &[],
        "tdm-policy" => &["tdm-policy", "tdm-reservation"],
        "tdm-reservation" => &["tdm-reservation"],
        "Content-Signal" => &["content-signal"],
        _ => &["content-usage"],
    };
    SignalRule {
        name: field.name,
        unless,
        values,
        paths,
        otherwise,
    }
}

/// `None` if a condition has a regular expression (see [`to_tag_condition`]).
fn to_tag_rule(rule: &IndexingRule) -> Option<TagRule> {
    let unless = match &rule.unless {
        Some(unless) => Some(to_tag_condition(unless)?),
        None => None,
    };
    Some(TagRule {
        when: to_tag_condition(&rule.when)?,
        unless,
        lines: rule.tags.lines(),
    })
}

/// `None` for a condition with a regular expression: servers read other dialects. Status 200 includes
/// 206: a part of a page is tagged as the page.
fn to_tag_condition(conditions: &ResponseConditions) -> Option<TagCondition> {
    let mut status = Vec::new();
    for condition in &conditions.status {
        match condition.value {
            StatusCondition::Code(200) => status.extend([(200, 200), (206, 206)]),
            StatusCondition::Code(code) => status.push((code, code)),
            StatusCondition::Class(class) => {
                let first = u16::from(class) * 100;
                status.push((first, first + 99));
            }
        }
    }
    conditions.path_regex.is_none().then(|| TagCondition {
        paths: located_values(&conditions.paths),
        types: located_values(&conditions.types),
        status,
    })
}

/// The parts of the policy that no web server can express.
fn unsupported_parts(site: &Site) -> impl Iterator<Item = &'static str> {
    let policy = &site.policy;
    let refuses = policy
        .enforcement
        .site
        .unverified
        .is_some_and(|said| said.value == UnverifiedTreatment::Refuse);
    let asks_for_delay = site
        .document
        .groups
        .iter()
        .any(|group| group.crawl_delay.is_some());
    let asks_for_proof = !site.networks.0.is_empty() || refuses;
    let has_traps = !policy.enforcement.traps.is_empty();
    let retires = !policy.retire.is_empty();
    let replaces = site.origin_tags == OriginTagsMode::Replace
        || policy.indexing.iter().any(|rule| {
            rule.origin_tags
                .is_some_and(|said| said >= OriginTagsMode::Replace)
        });
    [
        Some("grace: a new rule blocks at once, even a crawler that still uses the old robots.txt"),
        Some(
            "unknown bots, and other spellings of a path (\"/%63art/\", \"/x/../cart/\"): they \
             pass",
        ),
        asks_for_delay.then_some("Crawl-delay: requests are not counted"),
        has_traps.then_some("traps: the paths are disallowed, but no client is remembered"),
        asks_for_proof.then_some("verification of crawlers: every user agent is believed"),
        policy
            .license_demands()
            .next()
            .map(|_| "licences: no crawler is asked for one"),
        site.html
            .as_ref()
            .map(|_| "\"html\": pages are not rewritten"),
        retires.then_some("\"retire\": its present state stays until the next export"),
        replaces.then_some(
            "\"origin_tags: replace\", and \"origin_tags\" of a rule: the application's \
             X-Robots-Tag stays",
        ),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawlers::visitor_user_agents;
    use crate::export::regex::marker_regex;
    use crate::policy::{compile, read};
    use crate::yaml::SourceFile;
    use std::sync::Arc;

    /// The rules of a policy.
    fn exported_policy(text: &str) -> ExportedPolicy {
        let (policy, found) = read(
            "site",
            &SourceFile {
                name: "site.yaml".into(),
                text: text.into(),
            },
        );
        let policy = policy.unwrap_or_else(|| panic!("{text}: {found:?}"));
        ExportedPolicy::from_site(
            &compile(Arc::new(policy), Registry::builtin()).expect("compiles"),
            Registry::builtin(),
        )
    }

    /// The class of a user agent that is refused something, as a server finds it: the first marker
    /// that matches counts.
    fn blocking_marker<'m>(
        markers: &'m [(::regex::Regex, bool)],
        user_agent: &str,
    ) -> Option<&'m str> {
        let first = markers
            .iter()
            .find(|(regex, _)| regex.is_match(user_agent))?;
        first.1.then_some(first.0.as_str())
    }

    fn compiled_markers(rules: &ExportedPolicy) -> Vec<(::regex::Regex, bool)> {
        let markers = rules.ordered_markers().into_iter();
        let compiled = markers.map(|(class, marker)| {
            let regex = ::regex::RegexBuilder::new(&marker_regex(marker))
                .case_insensitive(true)
                .build();
            (regex.expect("a regex"), rules.classes[class].list.is_some())
        });
        compiled.collect()
    }

    #[test]
    fn exported_rules_block_no_person() {
        let words = crate::crawlers::visitor_words();
        let agents = words
            .iter()
            .map(|word| format!("\"{word}\""))
            .collect::<Vec<_>>()
            .join(", ");
        let rules = exported_policy(&format!(
            "robots: {{ origin: replace, groups: [{{ agents: [\"*\", {agents}], disallow: / }}] }}\n\
             enforcement: {{ mode: enforce }}\n"
        ));
        let markers = compiled_markers(&rules);
        let safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 \
                      Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0";
        for person in visitor_user_agents().chain([safari]) {
            assert_eq!(blocking_marker(&markers, person), None, "{person}");
        }
        assert!(
            blocking_marker(
                &markers,
                "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
            )
            .is_some()
        );
        assert!(
            rules
                .left_out
                .iter()
                .any(|line| line.contains("\"chrome\"")),
            "{:?}",
            rules.left_out
        );
    }

    #[test]
    fn markers_of_the_policy_are_exported() {
        let markers = compiled_markers(&exported_policy(
            "robots: { origin: replace, groups: [{ agents: Reader, disallow: / }, { agents: Googlebot, disallow: /a }] }\n\
             crawlers: [{ token: Reader, user_agent: Instagram }, { token: Googlebot, user_agent: OurGoogle }]\n\
             acknowledge: blocks_people\nenforcement: { mode: enforce }\n",
        ));
        assert!(
            blocking_marker(&markers, "Instagram 237.0").is_some()
                && blocking_marker(&markers, "OurGoogle/1.0").is_some()
        );
        assert_eq!(blocking_marker(&markers, "Reader/1.0"), None);
    }

    #[test]
    fn index_page_directory_is_exported_for_google_alone() {
        let text = "robots: { origin: replace, groups: [{ agents: '*', disallow: /d/, allow: /d/index.html }] }\n\
                    enforcement: { mode: enforce }\n";
        let rules = exported_policy(text);
        let opens = |wanted: &str| {
            let has_marker =
                |class: &&CrawlerClass| class.markers.iter().any(|(_, marker)| marker == wanted);
            let list = rules
                .classes
                .iter()
                .find(has_marker)
                .and_then(|class| class.list)
                .expect("a list");
            rules.lists[list]
                .iter()
                .any(|rule| rule.allow && rule.pattern == "/d/$")
        };
        assert!(opens("Googlebot") && opens("Storebot-Google"));
        assert!(!opens("bingbot") && !opens("GPTBot"));
    }
}
