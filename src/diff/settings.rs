//! [`settings`] lists the settings of two sites that differ and do not depend on the URL, such as
//! the treatment of crawlers and the files that are published.

use super::SettingChange;
use super::crawlers::{Class, sort};
use crate::policy::Site;
use crate::policy::model::{HtmlPolicy, PausePolicy};
use crate::policy::site::CrawlerRules;
use crate::robots::{Extension, seconds};
use crate::yaml::values;
use std::time::Duration;

/// All settings that differ, first those about crawlers, then those about the site. Crawlers for
/// which a setting changes in the same way are together.
pub fn settings(sites: [&Site; 2], classes: &[Class]) -> Vec<SettingChange> {
    let mut found: Vec<SettingChange> = Vec::new();
    for class in classes {
        let said = std::array::from_fn(|side| of_crawler(&class.rules[side], sites[side]));
        for (setting, old, new) in differing(said) {
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
        .for_each(|change| sort(&mut change.crawlers));
    let of_site = differing(sites.map(of_site));
    found.extend(of_site.map(|(setting, old, new)| SettingChange {
        setting,
        old,
        new,
        crawlers: Vec::new(),
    }));
    found
}

/// The settings that are not the same on both sides: name, old and new value. Both sides list them
/// in the same order.
fn differing<const N: usize>(
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

/// The settings of a site for one class of crawlers, by name. An answer is shown by its status.
fn of_crawler(rules: &CrawlerRules, site: &Site) -> [(&'static str, String); 10] {
    let [too_fast, impostor, trapped] =
        [rules.too_fast, rules.impostor, rules.trapped].map(|answer| {
            let answer = site.answers.get(usize::from(answer));
            or_none(answer.map(|answer| answer.status.to_string()))
        });
    let delay = rules
        .crawl_delay
        .map(|delay| format!("{} s", seconds(delay)));
    let unverified: &str = rules.unverified.into();
    [
        ("mode", rules.mode.name().to_owned()),
        ("crawl_delay", or_none(delay)),
        ("unverified", unverified.replace('_', " ")),
        ("exempt", yes_or_no(rules.exempt)),
        ("unlisted bot", yes_or_no(rules.unlisted)),
        ("too_fast", too_fast),
        ("impostor", impostor),
        ("trapped", trapped),
        ("trapped_for", span(rules.trapped_for)),
        (
            "other lines of its group",
            list(&lines_of_group(rules, site)),
        ),
    ]
}

/// The settings for the site, by name.
fn of_site(site: &Site) -> [(&'static str, String); 8] {
    let policy = &site.policy;
    [
        ("sitemaps", list(&site.document.sitemaps)),
        (
            "robots.txt Cache-Control",
            site.robots_txt.cache_control.clone(),
        ),
        ("grace", span(site.grace)),
        ("behind_cache", or_none(site.behind_cache.map(span))),
        ("origin_tags", <&str>::from(site.origin_tags).to_owned()),
        (
            "pause",
            list(&policy.pauses.iter().map(pause).collect::<Vec<_>>()),
        ),
        ("html", html(&policy.html)),
        (
            "lines of robots.txt before all groups",
            list(&written(&site.document.extensions)),
        ),
    ]
}

fn or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| "none".to_owned())
}

fn list(lines: &[String]) -> String {
    or_none((!lines.is_empty()).then(|| lines.join(", ")))
}

fn written(lines: &[Extension]) -> Vec<String> {
    lines
        .iter()
        .map(|line| format!("{}: {}", line.key, line.value))
        .collect()
}

/// The other lines of the group, such as Content-Signal.
fn lines_of_group(rules: &CrawlerRules, site: &Site) -> Vec<String> {
    let group = rules
        .binding
        .group()
        .and_then(|group| site.document.groups.get(usize::from(group)));
    group
        .map(|group| written(&group.extensions))
        .unwrap_or_default()
}

fn pause(pause: &PausePolicy) -> String {
    let robots_txt = if pause.pause_robots_txt {
        ", robots.txt too"
    } else {
        ""
    };
    format!("{} {}{robots_txt}", pause.audience.name(), pause.time)
}

fn html(html: &HtmlPolicy) -> String {
    let mut said: Vec<String> = Vec::new();
    if html.meta {
        said.push("meta".into());
    }
    for (name, list) in [("paths", &html.paths), ("not paths", &html.not_paths)] {
        if !list.is_empty() {
            said.push(format!("{name} {}", values(list).join(", ")));
        }
    }
    or_none((!said.is_empty()).then(|| said.join("; ")))
}

/// A duration in the largest unit that has no rest.
fn span(duration: Duration) -> String {
    match duration.as_secs() {
        0 => "0 s".to_owned(),
        whole if whole % 86_400 == 0 => format!("{} d", whole / 86_400),
        whole if whole % 3_600 == 0 => format!("{} h", whole / 3_600),
        whole if whole % 60 == 0 => format!("{} min", whole / 60),
        whole => format!("{whole} s"),
    }
}
