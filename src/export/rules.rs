//! [`Rules`]: the part of a policy that the configuration of nginx, HAProxy, Caddy or Apache can
//! express, in a form that is the same for all four. [`Rules::left_out`] lists the rest in words.

use super::regex::{marker_regex, media};
use crate::crawlers::{Claim, CrawlerIndex, Purpose, Registry, is_generic, is_of_people};
use crate::policy::Site;
use crate::policy::model::{
    Audience, Conditions, IndexingRule, Mode, OriginTags, PauseTime, StatusCondition, Unverified,
};
use crate::policy::site::{SecondReading, SignalField};
use crate::printable::join;
use crate::yaml::values;
use std::collections::BTreeSet;

/// The body of a refusal where the policy has none.
const REFUSED: &str = "The rules of this site do not let this crawler fetch this URL.\n\nThe rules of this site for \
                       crawlers: /robots.txt\n";
/// The body during a pause.
const PAUSED: &str = "The site is not to be fetched for the moment.\n";
/// Shorter tokens stand in the user agents of too many people.
const MIN_TOKEN: usize = 3;
/// What Apple Messages adds to a person's own user agent.
const APPLE_MESSAGES: &str = "facebookexternalhit/1.1 Facebot Twitterbot/1.0";

/// The part of a policy that a configuration can say.
#[derive(Clone, Default)]
pub struct Rules {
    /// The name of the policy.
    pub site: String,
    /// Files that are open to all, robots.txt first.
    pub files: Vec<ExportedFile>,
    /// Crawlers that are treated alike, each class with at least one marker.
    pub classes: Vec<CrawlerClass>,
    /// Lists of path rules. Of several that match, the first one counts.
    pub lists: Vec<Vec<PathRule>>,
    /// The answers to refusals.
    pub answers: Vec<ExportedAnswer>,
    /// The answer during the pause.
    pub pause: Option<ExportedAnswer>,
    /// Whether people get it, too.
    pub pauses_everyone: bool,
    /// X-Robots-Tag.
    pub tags: Vec<TagRule>,
    /// Fields about the use of pages. A field that the application sends itself stands.
    pub signals: Vec<SignalRule>,
    /// Whether the application's own X-Robots-Tag is taken away.
    pub strips_tags: bool,
    /// The parts of the policy that it cannot say, for a person.
    pub left_out: Vec<String>,
}

/// Crawlers that are treated alike.
#[derive(Clone)]
pub struct CrawlerClass {
    /// Their markers as in the registry, each with the order in which it counts: the lower first.
    pub markers: Vec<(u32, String)>,
    /// The list of path rules that binds them.
    pub list: Option<usize>,
    /// Whether the list closes everything.
    pub is_closed: bool,
    /// The answer where the list disallows a path.
    pub answer: usize,
    /// Whether a pause stops them.
    pub is_pausable: bool,
}

/// A rule of robots.txt.
#[derive(Clone, PartialEq, Eq)]
pub struct PathRule {
    /// Allow, or Disallow.
    pub allow: bool,
    /// The pattern.
    pub pattern: String,
}

/// An answer in place of the page.
#[derive(Clone, PartialEq, Eq)]
pub struct ExportedAnswer {
    /// The status.
    pub status: u16,
    /// Retry-After in seconds.
    pub retry_after: Option<u64>,
    /// The body.
    pub body: String,
}

/// A line of X-Robots-Tag, and the responses that get it.
#[derive(Clone)]
pub struct TagRule {
    /// What must hold.
    pub when: TagCondition,
    /// What must not hold.
    pub unless: Option<TagCondition>,
    /// The lines.
    pub lines: Vec<String>,
}

/// A condition on a request and its response: one of each list has to hold, unless the list is
/// empty.
#[derive(Clone)]
pub struct TagCondition {
    /// Patterns.
    pub paths: Vec<String>,
    /// Types like `application/pdf` or `image/*`.
    pub types: Vec<String>,
    /// First and last status.
    pub status: Vec<(u16, u16)>,
}

impl TagCondition {
    /// A regular expression for the types.
    pub fn type_regex(&self) -> String {
        join(self.types.iter().map(|kind| media(kind)), "|")
    }
}

impl TagRule {
    /// The conditions.
    pub fn conditions(&self) -> impl Iterator<Item = &TagCondition> {
        std::iter::once(&self.when).chain(&self.unless)
    }

    /// Whether every response gets the lines.
    pub fn is_unconditional(&self) -> bool {
        let when = &self.when;
        let is_empty = when.paths.is_empty() && when.types.is_empty() && when.status.is_empty();
        is_empty && self.unless.is_none()
    }
}

/// A file that is served in place of the application's.
#[derive(Clone)]
pub struct ExportedFile {
    /// Its path.
    pub path: &'static str,
    /// The type.
    pub media: &'static str,
    /// The value of Cache-Control.
    pub cache_control: String,
    /// The bytes.
    pub body: Vec<u8>,
}

/// A field of pages, by path.
#[derive(Clone)]
pub struct SignalRule {
    /// Its name.
    pub name: &'static str,
    /// Fields of the application whose presence keeps it away.
    pub unless: &'static [&'static str],
    /// The values. An empty one is no field.
    pub values: Vec<String>,
    /// Patterns, each with the place of its value. Of several that match the first counts.
    pub paths: Vec<(String, usize)>,
    /// The place of the value of every other path.
    pub otherwise: Option<usize>,
}

impl ExportedFile {
    /// Its name in the directory of the configuration.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

impl CrawlerClass {
    /// Whether its crawlers pass, whatever they ask for.
    fn is_idle(&self) -> bool {
        self.list.is_none() && !self.is_pausable
    }
}

impl Rules {
    /// The part of a site's policy that the configuration of a server can express. What it cannot
    /// express is described in `left_out`.
    pub fn of(site: &Site, registry: &Registry) -> Rules {
        let mut rules = Rules {
            site: site.name.clone(),
            files: files(site),
            signals: site.signals.by_path().iter().map(signal_rule).collect(),
            strips_tags: site.origin_tags == OriginTags::Strip,
            ..Rules::default()
        };
        rules.add_pause(site);
        for (index, crawler) in (0..).zip(registry.crawlers()) {
            let mut markers = crawler.markers.clone();
            let described = site
                .policy
                .crawlers
                .iter()
                .filter(|described| crawler.is_called(&described.token.value));
            markers.extend(described.flat_map(|described| values(&described.user_agent)));
            let is_tool = crawler.purpose == Purpose::Tool;
            rules.add(site, Claim::Known(CrawlerIndex(index)), &markers, is_tool);
        }
        let mut without_marker = Vec::new();
        for (index, token) in (0..).zip(site.tokens.tokens()) {
            let markers = markers_of_token(site, token);
            if markers.is_empty() {
                without_marker.push(format!("`{token}`"));
            }
            rules.add(site, Claim::Token(index), &markers, false);
        }
        if !without_marker.is_empty() {
            let tokens = without_marker.join(", ");
            rules.left_out.push(format!(
                "tokens that people's browsers or many bots have as a word: {tokens}"
            ));
        }
        if site.tokens.tokens().len() > without_marker.len() {
            rules.left_out.push(
                "people come first: names that only the policy knows are looked for in every user agent".to_owned(),
            );
        }
        // The preview of a link on a person's own device, and no crawler's.
        rules.add(site, Claim::Nobody, &[APPLE_MESSAGES.to_owned()], false);
        rules.drop_idle();
        for rule in &site.policy.indexing {
            match tag_rule(rule) {
                Some(tag) => rules.tags.push(tag),
                None => {
                    rules.left_out.push(
                        "a rule of `indexing` with `path_regex`: its X-Robots-Tag is missing"
                            .into(),
                    );
                }
            }
        }
        rules.left_out.extend(left_out(site).map(str::to_owned));
        rules
    }

    /// Takes over the first pause of the policy that has begun, has no recurrence and leaves
    /// robots.txt as it is. The exported pause has no end. That, and pauses that are not taken
    /// over, go into `left_out`.
    fn add_pause(&mut self, site: &Site) {
        let pauses = &site.policy.pauses;
        let pause = pauses.iter().find(|pause| match pause.time {
            PauseTime::Once { from, .. } => {
                from.is_none_or(|from| from <= site.at) && !pause.pause_robots_txt
            }
            _ => false,
        });
        if pauses.len() > usize::from(pause.is_some()) {
            self.left_out
                .push("`pause`: one begins later, recurs, or pauses robots.txt, too".to_owned());
        }
        let Some(pause) = pause else { return };
        self.left_out
            .push("the end of the pause: it lasts until this configuration is replaced".to_owned());
        self.pauses_everyone = pause.audience == Audience::Everyone;
        self.pause = Some(ExportedAnswer {
            status: 503,
            retry_after: Some(pause.retry_after.as_secs()),
            body: PAUSED.to_owned(),
        });
    }

    /// Adds a crawler with its markers to the class that is treated alike, or to a new class. Does
    /// nothing without markers. It gets a list of path rules only if robots.txt binds it and the
    /// policy enforces that. Of markers that match the same user agent the longer counts, and one
    /// of a tool (`is_tool`) counts last.
    fn add(&mut self, site: &Site, claim: Claim, markers: &[String], is_tool: bool) {
        if markers.is_empty() {
            return;
        }
        let claim = site.crawler_rules(claim);
        let is_held =
            claim.judged && claim.mode == Mode::Enforce && !claim.exempt && !claim.unlisted;
        let is_google = claim.second_reading != SecondReading::None;
        let group = claim.binding.group().filter(|_| is_held);
        let list = group.and_then(|group| self.list(site, usize::from(group), is_google));
        let answer = list.map_or(0, |_| self.answer(site, usize::from(claim.disallowed)));
        let is_pausable = claim.pausable && self.pause.is_some();
        // A named crawler before a tool, then the longer marker before the shorter.
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
                is_closed: list.is_some_and(|list| is_closed(&self.lists[list])),
                answer,
                is_pausable,
            }),
        }
    }

    /// The place of the rules of a group in `lists`; `None` without a Disallow. The longest pattern
    /// stands first, and of equals Allow. Google's crawlers also get what Google's parser alone
    /// allows.
    fn list(&mut self, site: &Site, group: usize, is_google: bool) -> Option<usize> {
        let rules = site
            .document
            .groups
            .get(group)?
            .rules
            .iter()
            .filter(|rule| !rule.pattern.is_empty());
        let mut list: Vec<PathRule> = Vec::new();
        for rule in rules {
            let directory = rule.google_directory().filter(|_| is_google);
            let patterns = std::iter::once(&rule.pattern).chain(&directory);
            list.extend(patterns.map(|pattern| PathRule {
                allow: rule.allow,
                pattern: pattern.as_str().to_owned(),
            }));
        }
        list.sort_by_key(|rule| (std::cmp::Reverse(rule.pattern.len()), !rule.allow));
        (!list.iter().all(|rule| rule.allow)).then(|| place_in(&mut self.lists, list))
    }

    /// The place in `answers` of the site's refusal at `place`, which is added if it is new. What
    /// the site does not say is status 403 and the text `REFUSED`.
    fn answer(&mut self, site: &Site, place: usize) -> usize {
        let answer = site.answers.get(place);
        let answer = ExportedAnswer {
            status: answer.map_or(403, |answer| answer.status),
            retry_after: answer.and_then(|answer| answer.retry_after).map(u64::from),
            body: answer
                .and_then(|answer| answer.body.as_deref())
                .unwrap_or(REFUSED)
                .to_owned(),
        };
        place_in(&mut self.answers, answer)
    }

    /// Drops markers of crawlers that pass, except those that hide a marker of another class.
    fn drop_idle(&mut self) {
        let held: BTreeSet<String> = self
            .classes
            .iter()
            .filter(|class| !class.is_idle())
            .flat_map(|class| &class.markers)
            .map(|(_, marker)| body(marker))
            .collect();
        for class in self.classes.iter_mut().filter(|class| class.is_idle()) {
            class
                .markers
                .retain(|(_, marker)| held.iter().any(|held| body(marker).contains(held.as_str())));
        }
        self.classes.retain(|class| !class.markers.is_empty());
    }

    /// Regular expressions for user agents, each with the place of its class, in the order in
    /// which they count.
    pub fn agents(&self) -> Vec<(usize, String)> {
        let markers = self.markers().into_iter();
        markers
            .map(|(place, marker)| (place, marker_regex(marker)))
            .collect()
    }

    /// Markers with the place of their class, in the order in which they count.
    pub fn markers(&self) -> Vec<(usize, &str)> {
        let mut all = Vec::new();
        for (place, class) in self.classes.iter().enumerate() {
            all.extend(
                class
                    .markers
                    .iter()
                    .map(|(order, marker)| (*order, place, marker.as_str())),
            );
        }
        all.sort_unstable();
        all.into_iter()
            .map(|(_, place, marker)| (place, marker))
            .collect()
    }
}

/// What the crawler of a token of the policy is known by: the owner's markers, else the token,
/// unless it stands in the user agents of people. A server cannot tell a person by the shape of a
/// user agent.
fn markers_of_token(site: &Site, token: &String) -> Vec<String> {
    let described = site
        .policy
        .described_crawler(token)
        .map(|described| values(&described.user_agent));
    let is_fit = token.len() >= MIN_TOKEN
        && !is_generic(token.as_bytes())
        && !is_of_people(token.as_bytes());
    match described.filter(|markers| !markers.is_empty()) {
        Some(markers) => markers,
        None if is_fit => vec![token.clone()],
        None => Vec::new(),
    }
}

/// A marker without its place in the user agent, in one case.
fn body(marker: &str) -> String {
    marker.trim_start_matches(['^', '=']).to_ascii_lowercase()
}

/// Whether a list closes everything.
fn is_closed(list: &[PathRule]) -> bool {
    match list {
        [only] => !only.allow && matches!(only.pattern.as_str(), "/" | "/*" | "*"),
        _ => false,
    }
}

/// The place of an item in a list; a new item is added.
fn place_in<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter()
        .position(|known| *known == item)
        .unwrap_or_else(|| {
            list.push(item);
            list.len() - 1
        })
}

/// The files that the server itself answers with: robots.txt, and tdmrep.json if the site has one.
fn files(site: &Site) -> Vec<ExportedFile> {
    let robots = ExportedFile {
        path: "/robots.txt",
        media: "text/plain; charset=utf-8",
        cache_control: site.robots_txt.cache_control.clone(),
        body: site.robots_txt.body.to_vec(),
    };
    let tdmrep = site.signals.tdmrep().map(|tdmrep| ExportedFile {
        path: "/.well-known/tdmrep.json",
        media: "application/json",
        cache_control: tdmrep.cache_control.clone(),
        body: tdmrep.body.to_vec(),
    });
    std::iter::once(robots).chain(tdmrep).collect()
}

/// The values of a header field by path. The first value without a pattern is that of every other
/// path, and ends the list. `unless` are the fields of the application beside which it is not sent.
fn signal_rule(field: &SignalField<'_>) -> SignalRule {
    let mut values: Vec<String> = Vec::new();
    let mut paths = Vec::new();
    let mut otherwise = None;
    for (pattern, value) in &field.values {
        let place = place_in(&mut values, value.to_string());
        match pattern {
            Some(pattern) => paths.push((pattern.as_str().to_owned(), place)),
            None => {
                otherwise = Some(place);
                break;
            }
        }
    }
    let unless: &[&str] = match field.name {
        // Links stand beside each other.
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

/// A rule of X-Robots-Tag for a server; `None` if one of its conditions has a regular expression
/// (see [`tag_condition`]).
fn tag_rule(rule: &IndexingRule) -> Option<TagRule> {
    let unless = match &rule.unless {
        Some(unless) => Some(tag_condition(unless)?),
        None => None,
    };
    Some(TagRule {
        when: tag_condition(&rule.when)?,
        unless,
        lines: rule.tags.lines(),
    })
}

/// A condition for a server; `None` for one with a regular expression, because servers read other
/// dialects. Status 200 includes 206: a part of a page is tagged as the page.
fn tag_condition(conditions: &Conditions) -> Option<TagCondition> {
    let mut status = Vec::new();
    for condition in &conditions.status {
        match condition.value {
            // A part of a page is tagged as the page.
            StatusCondition::Code(200) => status.extend([(200, 200), (206, 206)]),
            StatusCondition::Code(code) => status.push((code, code)),
            StatusCondition::Class(class) => {
                let first = u16::from(class) * 100;
                status.push((first, first + 99));
            }
        }
    }
    conditions.path_regex.is_none().then(|| TagCondition {
        paths: values(&conditions.paths),
        types: values(&conditions.types),
        status,
    })
}

/// The parts of the policy that no configuration can say.
fn left_out(site: &Site) -> impl Iterator<Item = &'static str> {
    let policy = &site.policy;
    let unverified = policy.enforcement.site.unverified;
    let refuses = unverified.is_some_and(|said| said.value == Unverified::Refuse);
    let mut groups = site.document.groups.iter();
    let asks_for_delay = groups.any(|group| group.crawl_delay.is_some());
    let asks_for_proof = !site.networks.is_empty() || refuses;
    let asks_for_license = policy.asks_for_license().next().is_some();
    let has_traps = !policy.enforcement.traps.is_empty();
    let retires = !policy.retire.is_empty();
    let replaces = site.origin_tags == OriginTags::Replace
        || policy.indexing.iter().any(|rule| {
            rule.origin_tags
                .is_some_and(|said| said >= OriginTags::Replace)
        });
    [
        Some(
            "cached versions: a new rule is enforced at once, also on crawlers that cannot know it yet",
        ),
        Some(
            "bots that the registry does not know, and other spellings of a path (`/%63art/`, `/x/../cart/`): they pass",
        ),
        asks_for_delay.then_some("Crawl-delay: requests are not counted"),
        has_traps.then_some("traps: the paths are disallowed, and no client is remembered"),
        asks_for_proof.then_some("addresses and proof of crawlers: a user agent is believed"),
        asks_for_license.then_some("licences: no crawler is asked for one"),
        site.html.as_ref().map(|_| "`html`: pages are not rewritten"),
        retires.then_some("`retire`: what it says now stays until the next export"),
        replaces.then_some(
            "`origin_tags: replace`, and `origin_tags` of a rule: the application's X-Robots-Tag stays",
        ),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawlers::people;
    use crate::export::regex::marker_regex;
    use crate::policy::{compile, read};
    use crate::yaml::Source;
    use std::sync::Arc;

    /// The rules of a policy.
    fn rules(text: &str) -> Rules {
        let (policy, found) = read(
            "site",
            &Source {
                name: "site.yaml".into(),
                text: text.into(),
            },
        );
        let policy = policy.unwrap_or_else(|| panic!("{text}: {found:?}"));
        Rules::of(
            &compile(Arc::new(policy), Registry::builtin()).expect("compiles"),
            Registry::builtin(),
        )
    }

    /// The class of a user agent that is refused something, as a server finds it: the first marker
    /// that matches counts.
    fn refused<'m>(markers: &'m [(::regex::Regex, bool)], user_agent: &str) -> Option<&'m str> {
        let first = markers
            .iter()
            .find(|(regex, _)| regex.is_match(user_agent))?;
        first.1.then_some(first.0.as_str())
    }

    fn compiled(rules: &Rules) -> Vec<(::regex::Regex, bool)> {
        let markers = rules.markers().into_iter();
        let compiled = markers.map(|(class, marker)| {
            let regex = ::regex::RegexBuilder::new(&marker_regex(marker))
                .case_insensitive(true)
                .build();
            (regex.expect("a regex"), rules.classes[class].list.is_some())
        });
        compiled.collect()
    }

    #[test]
    fn exported_rules_refuse_no_person() {
        let words = crate::crawlers::words_of_people();
        let agents = words
            .iter()
            .map(|word| format!("\"{word}\""))
            .collect::<Vec<_>>()
            .join(", ");
        let rules = rules(&format!(
            "robots: {{ origin: replace, groups: [{{ agents: [\"*\", {agents}], disallow: / }}] }}\n\
             enforcement: {{ mode: enforce }}\n"
        ));
        let markers = compiled(&rules);
        let safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 \
                      Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0";
        for person in people().chain([safari]) {
            assert_eq!(refused(&markers, person), None, "{person}");
        }
        assert!(
            refused(
                &markers,
                "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
            )
            .is_some()
        );
        assert!(
            rules.left_out.iter().any(|line| line.contains("`chrome`")),
            "{:?}",
            rules.left_out
        );
    }

    #[test]
    fn markers_of_the_policy_are_exported() {
        let markers = compiled(&rules(
            "robots: { origin: replace, groups: [{ agents: Reader, disallow: / }, { agents: Googlebot, disallow: /a }] }\n\
             crawlers: [{ token: Reader, user_agent: Instagram }, { token: Googlebot, user_agent: OurGoogle }]\n\
             acknowledge: blocks_people\nenforcement: { mode: enforce }\n",
        ));
        assert!(
            refused(&markers, "Instagram 237.0").is_some()
                && refused(&markers, "OurGoogle/1.0").is_some()
        );
        assert_eq!(refused(&markers, "Reader/1.0"), None);
    }

    #[test]
    fn directory_of_an_index_page_is_exported_for_google_alone() {
        let text = "robots: { origin: replace, groups: [{ agents: '*', disallow: /d/, allow: /d/index.html }] }\n\
                    enforcement: { mode: enforce }\n";
        let rules = rules(text);
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
