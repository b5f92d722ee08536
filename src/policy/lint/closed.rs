//! Lints of rules that close more than their owners want: the whole site, or the files that pages
//! are made of. They check the group for Googlebot, or `*`, because owners notice there first.

use super::catalogue as lints;
use super::subject::{Subject, SubjectGroup, SubjectRule};
use crate::policy::site::SEARCH_ENGINES;
use crate::robots::{Agent, Closed, Dialect, Extent, TargetScratch, closed};
use crate::yaml::Diagnostics;

/// Files that a page needs to be shown: what they are called in a finding, how their paths end, and
/// the folders that hold them.
const RESOURCES: [(&str, &[&str], &[&str]); 3] = [
    ("style sheets", &["css"], &["css", "styles", "stylesheets"]),
    (
        "scripts",
        &["js", "mjs"],
        &["js", "javascript", "javascripts"],
    ),
    (
        "images",
        &["png", "jpg", "jpeg", "gif", "webp", "svg"],
        &["img", "images", "wp-content/uploads"],
    ),
];
/// Folders that hold all of them.
const FOLDERS_OF_ALL: [&str; 12] = [
    "assets",
    "static",
    "_next/static",
    "_nuxt",
    "pub/static",
    "dist",
    "themes",
    "skins",
    "skin",
    "wp-includes",
    "wp-content/themes",
    "wp-content/plugins",
];

/// Reports, for a file only, search engines that are kept off the site (a policy has an interlock
/// for that); and, unless the group is closed to the whole site, files that pages need and the
/// group for Googlebot, else `*`, may not fetch.
pub fn lint(subject: &Subject, diagnostics: &mut Diagnostics) {
    // A policy has an interlock for it.
    if !subject.is_policy {
        site_closed(subject, diagnostics);
    }
    let group = ["Googlebot", "*"]
        .into_iter()
        .find_map(|name| Some((name, subject.named(name)?)));
    let Some((name, group)) = group.filter(|(_, group)| group.closing().is_none()) else {
        return;
    };
    let crawlers = if name == "*" { "search engines" } else { name };
    resources_closed(crawlers, group, diagnostics);
}

/// Whether the engine is Googlebot and can fetch nothing of the site: no production site is
/// published like this. Another engine that is shut out, or a part that is open, is an owner's
/// choice.
pub fn shuts_out(engine: &str, closed: Closed) -> bool {
    engine == SEARCH_ENGINES[0] && closed.extent == Extent::Whole
}

/// Whether a search engine takes the name of a group for its own, without regard to case. Google's
/// library cuts the name at the first sign that is no letter, `-` or `_`: a group for `Googlebot2`
/// is Googlebot's, one for `Googlebot-Image` is not. Other engines compare it whole.
pub fn is_named(engine: &str, agent: &str) -> bool {
    let cut = match Dialect::Google.agent(agent.as_bytes(), &[]) {
        Agent::Token(token) if engine == SEARCH_ENGINES[0] => token,
        _ => agent.as_bytes(),
    };
    cut.eq_ignore_ascii_case(engine.as_bytes())
}

/// What a search engine may not fetch, in a finding.
pub fn kept_off(extent: Extent) -> &'static str {
    match extent {
        Extent::FrontPage => "the front page",
        Extent::AllButAllowed => "all of the site but what a rule allows",
        Extent::Whole => "the whole site",
    }
}

/// Reports rules that keep a search engine off the front page, most of the site, or all of it, by
/// the groups that name the engine, else by `*`. Each rule is reported once. For Googlebot and the
/// whole site the finding is about the file, and says whether every crawler is kept off.
fn site_closed(subject: &Subject, diagnostics: &mut Diagnostics) {
    let mut shown = Vec::new();
    for engine in SEARCH_ENGINES {
        let mut groups: Vec<&SubjectGroup> = Vec::new();
        for group in &subject.groups {
            if group
                .agents
                .iter()
                .any(|(agent, _)| is_named(engine, agent))
            {
                groups.push(group);
            }
        }
        if groups.is_empty() {
            groups.extend(subject.named("*"));
        }
        let rules: Vec<&SubjectRule> = groups.iter().flat_map(|group| &group.rules).collect();
        let Some(closed) = closed(&rules) else {
            continue;
        };
        let rule = rules[closed.rule];
        if shown.contains(&rule.span) {
            continue;
        }
        shown.push(rule.span);
        if !shuts_out(engine, closed) {
            let message = format!("this keeps {engine} off {}", kept_off(closed.extent));
            let help = "remove the rule if that is to be found";
            lints::SITE_PARTLY_CLOSED.report(diagnostics, rule.span, message, help);
            continue;
        }
        let to_all = subject
            .named("*")
            .is_some_and(|star| star.closing().is_some())
            && subject.groups.iter().all(|group| group.closing().is_some());
        let to = if to_all {
            "every crawler: search engines drop it"
        } else {
            "Googlebot: Google drops it"
        };
        // About the file, so that it comes first.
        lints::SITE_CLOSED.report(
            diagnostics,
            None,
            format!("line {} closes the whole site to {to}", rule.span.line),
            "remove the rule if the site is to be found; a test site is kept private by a password, and not by robots.txt",
        );
    }
}

/// Reports Disallow rules that close style sheets, scripts or images. Google renders pages: what it
/// may not fetch is missing from them. `crawlers` is what the finding calls them.
fn resources_closed(crawlers: &str, group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    for rule in group.rules.iter().filter(|rule| !rule.allow) {
        let kinds = closed_by(rule.pattern.as_str(), group);
        if !kinds.is_empty() {
            lints::RESOURCES_CLOSED.report(
                diagnostics,
                rule.span,
                format!(
                    "`{}` keeps {crawlers} off {}",
                    rule.pattern.as_str(),
                    kinds.join(" and ")
                ),
                "search engines look at pages as people see them; allow what the pages need",
            );
        }
    }
}

/// The kinds of resources that a pattern closes and no other rule of the group opens again. It must
/// be a known folder of the site's root (`/css/`), or an ending (`/*.css$`): single files and
/// folders of a section are closed for reasons of their own. A sample URL of each kind is tried.
fn closed_by(pattern: &str, group: &SubjectGroup) -> Vec<&'static str> {
    let path = pattern
        .trim_end_matches(['$', '*'])
        .trim_start_matches(['/', '*']);
    let folder = path.trim_end_matches('/');
    let mut closed = Vec::new();
    for (kind, endings, folders) in &RESOURCES {
        // What is left of `/*.css$` is the ending.
        let ending = path
            .strip_prefix('.')
            .filter(|ending| contains_word(endings, ending));
        let sample = if let Some(ending) = ending {
            format!("/folder/sample.{ending}")
        } else if contains_word(&FOLDERS_OF_ALL, folder) || contains_word(folders, folder) {
            // The first ending stands for all: lists that open some of them leave out the rare
            // ones.
            format!("/{folder}/sample.{}", endings[0])
        } else {
            continue;
        };
        let mut scratch = TargetScratch::default();
        let target = scratch.normalise(sample.as_bytes()).sent;
        if group.deciding(target).is_some_and(|rule| !rule.allow) {
            closed.push(*kind);
        }
    }
    closed
}

fn contains_word(words: &[&str], word: &str) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}
