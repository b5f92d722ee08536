//! Lints of robots.txt rules that close more than their owners want: the whole site, or files that
//! pages need (style sheets, scripts, images). These lints check the group for Googlebot. If there
//! is none, they check the group for `*`.

use super::catalogue as lints;
use super::subject::{LintSubject, SubjectGroup, SubjectRule};
use crate::policy::site::SEARCH_ENGINES;
use crate::robots::{
    AgentName, BlanketDisallow, Dialect, DisallowedPart, TargetScratch, blanket_disallow,
};
use crate::yaml::Diagnostics;
use DisallowedPart::*;

/// Files that pages need: their name in a finding, their extensions, and their usual folders.
const RESOURCES: [(&str, &[&str], &[&str]); 3] = [
    (
        "style sheets",
        &["css"],
        &["css/", "styles/", "stylesheets/"],
    ),
    (
        "scripts",
        &["js", "mjs"],
        &["js/", "javascript/", "javascripts/"],
    ),
    (
        "images",
        &["png", "jpg", "jpeg", "gif", "webp", "svg"],
        &["img/", "images/", "wp-content/uploads/"],
    ),
];
/// Usual folders of all of them.
const FOLDERS_OF_ALL: [&str; 12] = [
    "assets/",
    "static/",
    "_next/static/",
    "_nuxt/",
    "pub/static/",
    "dist/",
    "themes/",
    "skins/",
    "skin/",
    "wp-includes/",
    "wp-content/themes/",
    "wp-content/plugins/",
];

/// Reports closed sites (only of a file: a policy has an interlock), and closed files that pages
/// need.
pub fn lint(subject: &LintSubject, diagnostics: &mut Diagnostics) {
    if !subject.is_policy {
        lint_closed_site(subject, diagnostics);
    }
    let group = ["Googlebot", "*"]
        .into_iter()
        .find_map(|name| Some((name, subject.group_for_token(name)?)));
    let Some((name, group)) = group.filter(|(_, group)| group.closing_rule().is_none()) else {
        return;
    };
    let crawlers = if name == "*" { "search engines" } else { name };
    lint_closed_resources(crawlers, group, diagnostics);
}

/// Whether the whole site is closed to Googlebot, which no owner of a production site wants. Other
/// engines, and parts of the site, are the owner's choice.
pub fn closes_site_to_googlebot(engine: &str, closed: BlanketDisallow) -> bool {
    engine == SEARCH_ENGINES[0] && closed.part == Whole
}

/// Whether a search engine follows a group with this name. Google's library cuts the name at the
/// first character that is no letter,
/// `-`parse_agent_`: it follows `Googlebot2`. Other engines compare it whole.
pub fn engine_takes_name(engine: &str, agent: &str) -> bool {
    let cut = match Dialect::Google.parse_agent(agent.as_bytes(), &[]) {
        AgentName::Token(token) if engine == SEARCH_ENGINES[0] => token,
        _ => agent.as_bytes(),
    };
    cut.eq_ignore_ascii_case(engine.as_bytes())
}

/// What is closed, as a text for findings.
pub fn extent_text(extent: DisallowedPart) -> &'static str {
    match extent {
        FrontPage => "the front page",
        AllButAllowed => "all of the site except what a rule allows",
        Whole => "the whole site",
    }
}

/// Reports rules that close the front page, most of the site or all of it to a search engine, each
/// rule once. A site that is closed to Googlebot is a finding about the whole file.
fn lint_closed_site(subject: &LintSubject, diagnostics: &mut Diagnostics) {
    let mut shown = Vec::new();
    for engine in SEARCH_ENGINES {
        let named = subject.groups.iter().filter(|group| {
            let mut agents = group.agents.iter();
            agents.any(|agent| engine_takes_name(engine, agent))
        });
        let mut groups: Vec<&SubjectGroup> = named.collect();
        if groups.is_empty() {
            groups.extend(subject.group_for_token("*"));
        }
        let rules = groups.iter().flat_map(|group| &group.rules);
        let rules: Vec<SubjectRule> = rules.cloned().collect();
        let Some(closed) = blanket_disallow(&rules) else {
            continue;
        };
        let rule = &rules[closed.rule];
        if shown.contains(&rule.span) {
            continue;
        }
        shown.push(rule.span);
        if !closes_site_to_googlebot(engine, closed) {
            let message = format!("this keeps {engine} off {}", extent_text(closed.part));
            let help = "remove the rule if search engines are to find the rest of the site";
            lints::SITE_PARTLY_CLOSED.report(diagnostics, rule.span, message, help);
            continue;
        }
        let mut groups = subject.groups.iter();
        let to_all = subject.group_for_token("*").is_some()
            && groups.all(|group| group.closing_rule().is_some());
        let to = if to_all {
            "all crawlers: search engines will drop it"
        } else {
            "Googlebot: Google will drop it"
        };
        // Without a place, so that it comes first.
        lints::SITE_CLOSED.report(
            diagnostics,
            None,
            format!("line {} closes the whole site to {to}", rule.span.line),
            "remove the rule if search engines are to find the site. To keep a test site private, \
             use a password: robots.txt does not protect it",
        );
    }
}

/// Reports Disallow rules that close style sheets, scripts or images, which Google needs to render
/// pages.
fn lint_closed_resources(crawlers: &str, group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    for rule in group.rules.iter().filter(|rule| !rule.allow) {
        let kinds = closed_resources(rule.pattern.as_str(), group);
        if !kinds.is_empty() {
            lints::RESOURCES_CLOSED.report(
                diagnostics,
                rule.span,
                format!(
                    "\"{}\" keeps {crawlers} off {}",
                    rule.pattern.as_str(),
                    kinds.join(", ")
                ),
                "search engines render pages as visitors see them; allow the files that pages need",
            );
        }
    }
}

/// The kinds of resources that a pattern closes and no other rule of the group opens again. The
/// pattern must be a usual folder in the site's root (`/css/`), a folder around one
/// (`/wp-content/`), or an extension (`/*.css$`). Sample URLs of each kind are tried.
fn closed_resources(pattern: &str, group: &SubjectGroup) -> Vec<&'static str> {
    let path = pattern
        .trim_end_matches(['$', '*'])
        .trim_start_matches(['/', '*']);
    let folder = path.trim_end_matches('/');
    let mut closed = Vec::new();
    let mut scratch = TargetScratch::default();
    for (kind, endings, folders) in &RESOURCES {
        let mut known = endings.iter();
        let ending = path
            .strip_prefix('.')
            .filter(|ending| known.any(|known| known.eq_ignore_ascii_case(ending)));
        // An extension is tried in any folder, not in the usual ones: a rule may open some of them.
        let in_any_folder = ending.map(|_| "/");
        let folder = in_any_folder.map_or(folder, |_| "folder");
        // Rules that open some extensions may leave out the rare ones.
        let ending = ending.unwrap_or(endings[0]);
        let lower = folder.to_ascii_lowercase();
        let known = FOLDERS_OF_ALL.iter().chain(*folders);
        let rests = known.filter_map(|known| known.strip_prefix(&*lower));
        // "/wp-" closes all folders of WordPress.
        let rests = rests.filter(|rest| rest.starts_with('/') || lower.ends_with('-'));
        if rests.chain(in_any_folder).any(|rest| {
            let sample = format!("/{folder}{rest}sample.{ending}");
            let target = scratch.normalise(sample.as_bytes()).sent;
            group.deciding_rule(target).is_some_and(|rule| !rule.allow)
        }) {
            closed.push(*kind);
        }
    }
    closed
}
