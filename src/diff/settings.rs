//! [`changed_settings`] lists the differences between an old and a new policy that do not depend on
//! the URL, such as the mode of a crawler or `Cache-Control` of robots.txt.

use super::SettingChange;
use super::crawlers::{CrawlerClass, sort_crawlers};
use crate::policy::Site;
use crate::policy::model::{HtmlPolicy, PausePolicy};
use crate::policy::site::CrawlerRules;
use crate::robots::{ExtensionLine, format_seconds};
use crate::yaml::located_values;
use std::time::Duration;

/// All settings that differ, first for crawlers, then for the site. Crawlers with the same change
/// are together.
pub fn changed_settings(sites: [&Site; 2], classes: &[CrawlerClass]) -> Vec<SettingChange> {
    let mut found: Vec<SettingChange> = Vec::new();
    for class in classes {
        let values = std::array::from_fn(|side| crawler_settings(&class.rules[side], sites[side]));
        for (setting, old, new) in changed_values(values) {
            match found
                .iter_mut()
                .find(|known| (known.setting, &known.old, &known.new) == (setting, &old, &new))
            {
                Some(known) => known.crawlers.extend(class.crawlers.iter().cloned()),
                None => found.push(SettingChange {
                    setting,
                    old,
                    new,
                    crawlers: class.crawlers.clone(),
                }),
            }
        }
    }
    found
        .iter_mut()
        .for_each(|change| sort_crawlers(&mut change.crawlers));
    let of_site = changed_values(sites.map(site_settings));
    found.extend(of_site.map(|(setting, old, new)| SettingChange {
        setting,
        old,
        new,
        crawlers: Vec::new(),
    }));
    found
}

/// Name, old and new value of the settings that differ. Both sides list them in the same order.
fn changed_values<const N: usize>(
    [old, new]: [[(&'static str, String); N]; 2],
) -> impl Iterator<Item = (&'static str, String, String)> {
    let pairs = old
        .into_iter()
        .zip(new)
        .map(|((setting, old), (_, new))| (setting, old, new));
    pairs.filter(|(_, old, new)| old != new)
}

fn yes_or_no(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

/// The settings of a site for one class of crawlers, by name. The value of an answer is its status.
fn crawler_settings(rules: &CrawlerRules, site: &Site) -> [(&'static str, String); 10] {
    let [too_fast, impostor, trapped] =
        [rules.too_fast, rules.impostor, rules.trapped].map(|answer| {
            let answer = site.answers.get(usize::from(answer));
            value_or_none(answer.map(|answer| answer.status.to_string()))
        });
    let delay = rules
        .crawl_delay
        .map(|delay| format!("{} s", format_seconds(delay)));
    let unverified: &str = rules.unverified.into();
    [
        ("mode", rules.mode.name().to_owned()),
        ("crawl_delay", value_or_none(delay)),
        ("unverified", unverified.replace('_', " ")),
        ("exempt", yes_or_no(rules.exempt)),
        ("unlisted bot", yes_or_no(rules.unlisted)),
        ("too_fast", too_fast),
        ("impostor", impostor),
        ("trapped", trapped),
        ("trapped_for", describe_duration(rules.trapped_for)),
        (
            "other lines of its group",
            join_or_none(&group_extension_lines(rules, site)),
        ),
    ]
}

/// The settings for the site, by name.
fn site_settings(site: &Site) -> [(&'static str, String); 8] {
    let policy = &site.policy;
    [
        ("sitemaps", join_or_none(&site.document.sitemaps)),
        (
            "robots.txt Cache-Control",
            site.robots_txt.cache_control.clone(),
        ),
        ("grace", describe_duration(site.grace)),
        (
            "behind_cache",
            value_or_none(site.behind_cache.map(describe_duration)),
        ),
        ("origin_tags", <&str>::from(site.origin_tags).to_owned()),
        (
            "pause",
            join_or_none(&policy.pauses.iter().map(describe_pause).collect::<Vec<_>>()),
        ),
        ("html", describe_html(&policy.html)),
        (
            "lines of robots.txt before all groups",
            join_or_none(&extension_lines(&site.document.extensions)),
        ),
    ]
}

fn value_or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| "none".to_owned())
}

fn join_or_none(lines: &[String]) -> String {
    value_or_none((!lines.is_empty()).then(|| lines.join(", ")))
}

fn extension_lines(lines: &[ExtensionLine]) -> Vec<String> {
    lines
        .iter()
        .map(|line| format!("{}: {}", line.key, line.value))
        .collect()
}

/// The lines of the group other than rules, such as Content-Signal.
fn group_extension_lines(rules: &CrawlerRules, site: &Site) -> Vec<String> {
    let group = rules
        .binding
        .group()
        .and_then(|group| site.document.groups.get(usize::from(group)));
    group
        .map(|group| extension_lines(&group.extensions))
        .unwrap_or_default()
}

fn describe_pause(pause: &PausePolicy) -> String {
    let robots_txt = if pause.pause_robots_txt {
        ", robots.txt too"
    } else {
        ""
    };
    format!("{} {}{robots_txt}", pause.audience.name(), pause.schedule)
}

fn describe_html(html: &HtmlPolicy) -> String {
    let mut parts: Vec<String> = Vec::new();
    if html.meta {
        parts.push("meta".into());
    }
    for (name, list) in [("paths", &html.paths), ("not paths", &html.not_paths)] {
        if !list.is_empty() {
            parts.push(format!("{name} {}", located_values(list).join(", ")));
        }
    }
    value_or_none((!parts.is_empty()).then(|| parts.join("; ")))
}

/// A duration in the largest unit that divides it.
fn describe_duration(duration: Duration) -> String {
    match duration.as_secs() {
        0 => "0 s".to_owned(),
        whole if whole % 86_400 == 0 => format!("{} d", whole / 86_400),
        whole if whole % 3_600 == 0 => format!("{} h", whole / 3_600),
        whole if whole % 60 == 0 => format!("{} min", whole / 60),
        whole => format!("{whole} s"),
    }
}
