//! [`changed_settings`] lists the differences between an old and a new policy that do not depend on
//! the URL, such as the mode of a crawler or the `Cache-Control` of robots.txt. It renders the
//! settings of each policy as a text with one setting a line, and compares the two texts line by
//! line. The templates are `crawler_settings.txt` and `site_settings.txt`.

use super::SettingChange;
use super::crawlers::{CrawlerClass, sort_crawlers};
use crate::policy::Site;
use crate::policy::site::CrawlerRules;
use crate::robots::{ExtensionLine, format_seconds};
use crate::yaml::located_values;
use askama::Template;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// All settings that differ, first for crawlers, then for the site. Crawlers with the same change
/// are together.
pub fn changed_settings(sites: [&Site; 2], classes: &[CrawlerClass]) -> Vec<SettingChange> {
    let mut found: Vec<SettingChange> = Vec::new();
    for class in classes {
        let texts = std::array::from_fn(|side| {
            let rules = &class.rules[side];
            CrawlerSettingsText {
                rules,
                site: sites[side],
                unverified: rules.unverified.into(),
            }
            .to_string()
        });
        for change in changed_lines(texts, &class.crawlers) {
            match found.iter_mut().find(|known| {
                (&known.setting, &known.old, &known.new)
                    == (&change.setting, &change.old, &change.new)
            }) {
                Some(known) => known.crawlers.extend(change.crawlers),
                None => found.push(change),
            }
        }
    }
    for change in &mut found {
        sort_crawlers(&mut change.crawlers);
    }
    let texts = sites.map(|site| {
        SiteSettingsText {
            site,
            origin_tags: site.origin_tags.into(),
        }
        .to_string()
    });
    found.extend(changed_lines(texts, &[]));
    found
}

/// The lines that differ, for these crawlers. Both texts have the same settings in the same order.
fn changed_lines(texts: [String; 2], crawlers: &[String]) -> Vec<SettingChange> {
    let mut changes = Vec::new();
    for (old, new) in std::iter::zip(texts[0].lines(), texts[1].lines()) {
        if let Some((setting, old)) = old.split_once(": ")
            && let Some((_, new)) = new.split_once(": ")
            && old != new
        {
            changes.push(SettingChange {
                setting: setting.to_owned(),
                old: old.to_owned(),
                new: new.to_owned(),
                crawlers: crawlers.to_vec(),
            });
        }
    }
    changes
}

/// The settings of a site for one class of crawlers. The value of an answer is its status.
#[derive(Template)]
#[template(path = "crawler_settings.txt")]
struct CrawlerSettingsText<'a> {
    rules: &'a CrawlerRules,
    site: &'a Site,
    unverified: &'a str,
}

impl CrawlerSettingsText<'_> {
    fn status(&self, answer: u16) -> String {
        match self.site.answers.get(usize::from(answer)) {
            Some(answer) => answer.status.to_string(),
            None => "none".to_owned(),
        }
    }

    /// The lines of its group other than rules, such as Content-Signal.
    fn group_lines(&self) -> &[ExtensionLine] {
        self.rules
            .binding
            .group()
            .and_then(|group| self.site.document.groups.get(group))
            .map_or(&[], |group| &group.extensions)
    }
}

/// The settings for the site.
#[derive(Template)]
#[template(path = "site_settings.txt")]
struct SiteSettingsText<'a> {
    site: &'a Site,
    origin_tags: &'a str,
}

impl SiteSettingsText<'_> {
    /// The sitemaps. Those of a robots.txt without a policy may be ones that crawlers cannot reach.
    fn sitemaps(&self) -> BTreeSet<String> {
        let mut sitemaps = BTreeSet::from_iter(self.site.document.sitemaps.iter().cloned());
        if let Some(origin) = &self.site.origin
            && self.site.policy.hosts.is_empty()
        {
            sitemaps.extend(origin.file.sitemaps().map(Cow::into_owned));
        }
        sitemaps
    }
}
