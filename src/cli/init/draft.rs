//! [`PolicyDraftInputs::render`] makes the policy that the command `init` writes for a new site.
//! The policy begins with a preset, or with the rules of the robots.txt that the site serves now.
//! Either way, the policy only observes crawlers and blocks none.

use super::comparison::other_host;
use crate::cli::shell_words::shell_quote;
use crate::crawlers::Registry;
use crate::policy::decode::is_comment;
use crate::policy::import::{ImportNote, ImportedPolicy, import, yaml_list};
use crate::printable::join;
use crate::robots::{Dialect, DialectRules, RobotsFile};
use std::path::Path;

/// The robots block of every preset and of an imported policy begins so.
const ROBOTS: &str = "robots:\n  origin: replace\n";
const COMMENT: &str = "  comment: |\n";
/// Of presets that enforce; a draft does not.
const COPY_NOTE: &str = "# Copied as it is, this file blocks crawlers and replaces your robots.txt. `crawlgate init` writes one that only observes.\n";
const ACKNOWLEDGEMENT: &str = "acknowledge: [site_disallowed]   # your old robots.txt did the same";

/// The policies that crawlgate brings.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub enum Preset {
    /// Everyone may crawl, except a few corners
    OpenSite,
    /// Search engines may crawl, training crawlers may not
    SearchYesTrainingNo,
    /// Licence signals for publishers
    Publisher,
    /// Archives may crawl more than others
    ArchiveFriendly,
    /// Only the front pages may be crawled
    MembersOnly,
    /// A planned pause for crawlers
    Maintenance,
    /// noindex on every page
    Staging,
}

impl Preset {
    fn text(self) -> &'static str {
        use Preset::*;

        match self {
            OpenSite => include_str!("../../../policies/presets/open-site.yaml"),
            SearchYesTrainingNo => {
                include_str!("../../../policies/presets/search-yes-training-no.yaml")
            }
            Publisher => include_str!("../../../policies/presets/publisher.yaml"),
            ArchiveFriendly => include_str!("../../../policies/presets/archive-friendly.yaml"),
            MembersOnly => include_str!("../../../policies/presets/members-only.yaml"),
            Maintenance => include_str!("../../../policies/presets/maintenance.yaml"),
            Staging => include_str!("../../../policies/presets/staging.yaml"),
        }
    }
}

/// Where the rules of a policy come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DraftSource {
    RobotsTxt,
    /// No place has rules.
    NoRules,
    Preset,
    /// The origin's rules are added while crawlgate runs.
    PresetAndOrigin,
    /// robots.txt could not be fetched.
    Origin,
}

/// What the policy of a new site is made of.
pub struct PolicyDraftInputs<'a> {
    pub hosts: &'a [String],
    pub preset: Option<Preset>,
    /// The robots.txt that crawlers know; `None` if it could not be fetched.
    pub before: Option<&'a [u8]>,
    /// The name of its file, beside the policy.
    pub before_name: &'a str,
    /// Whether crawlers know no other file.
    pub is_unchanged: bool,
}

/// The policy as YAML.
pub struct DraftedPolicy {
    pub text: String,
    pub source: DraftSource,
    /// Whether the robots.txt keeps Googlebot off the whole site.
    pub closes_site: bool,
    /// Beside the origin's rules: whether the comment at the top of the origin's file is in the policy;
    /// `None` if there is none.
    pub keeps_comment: Option<bool>,
    pub notes: Vec<(usize, ImportNote)>,
}

impl PolicyDraftInputs<'_> {
    /// Renders the policy.
    pub fn render(&self) -> DraftedPolicy {
        let before = RobotsFile::parse(self.before.unwrap_or_default());
        let has_rules = self.before.is_some_and(|before| !before.is_empty());
        let source = match self.preset {
            Some(Preset::Staging) => DraftSource::Preset,
            Some(_) if has_rules || self.before.is_none() => DraftSource::PresetAndOrigin,
            Some(_) => DraftSource::Preset,
            None if self.before.is_none() => DraftSource::Origin,
            None if has_rules => DraftSource::RobotsTxt,
            None => DraftSource::NoRules,
        };
        let ImportedPolicy { text, mut notes } = match self.preset {
            Some(preset) => ImportedPolicy {
                text: self.adapt_preset(preset, source),
                notes: Vec::new(),
            },
            None => import(&before, None, Registry::builtin()),
        };
        let noted = notes.len();
        notes.retain(|(_, note)| *note != ImportNote::Acknowledgement);
        let closes_site = notes.len() < noted;
        // The import ends with the acknowledgement as a comment. The site is closed already, and
        // the summary says so.
        let text = match text.trim_end().rsplit_once("\n\n") {
            Some((rest, _)) if closes_site => format!("{rest}\n\n{ACKNOWLEDGEMENT}\n"),
            _ => text,
        };
        let mut comment = match source {
            DraftSource::PresetAndOrigin => leading_comment(&before),
            _ => String::new(),
        };
        let keeps_comment = (!comment.is_empty()).then(|| is_comment(&comment));
        if keeps_comment == Some(false) {
            comment.clear();
        }
        DraftedPolicy {
            text: self.add_fields(&text, source, &comment),
            source,
            closes_site,
            keeps_comment,
            notes,
        }
    }

    /// A path that the robots.txt disallows for GPTBot and that a shell needs no quotes for; else `/`.
    pub fn disallowed_path(&self) -> String {
        let file = RobotsFile::parse(self.before.unwrap_or_default());
        let rules = DialectRules::new(&file, Dialect::Rfc9309, &[]);
        rules
            .groups_at(rules.groups_for(b"GPTBot").1)
            .flat_map(|group| &group.rules)
            .map(|line| line.rule.pattern.as_str())
            .find(|path| {
                shell_quote(Path::new(path)) == **path
                    && !rules.verdict(b"GPTBot", path.as_bytes()).allowed
            })
            .unwrap_or("/")
            .to_owned()
    }

    /// The first host with or without `www.`, unless the policy has it.
    pub fn missing_host(&self) -> Option<String> {
        let other = other_host(&self.hosts[0]);
        (!self.hosts.contains(&other)).then_some(other)
    }

    /// The preset for the first host. The policy observes. It keeps the preset's tests; beside the
    /// origin's rules, which may disallow more, only those that expect `disallowed`.
    fn adapt_preset(&self, preset: Preset, source: DraftSource) -> String {
        let text = preset
            .text()
            .replace(COPY_NOTE, "")
            .replace("hosts: [site.example, www.site.example]\n\n", "")
            .replace("site.example", &self.hosts[0]);
        let (rules, tests) = text.split_once("\ntests:\n  - ").unwrap_or((&text, ""));
        let is_merged = source == DraftSource::PresetAndOrigin;
        let tests: String = tests
            .split("\n  - ")
            .filter(|test| !is_merged || test.contains("disallowed"))
            .map(|test| format!("  - {}\n", test.trim_end()))
            .collect();
        let mut policy = observing_preset(rules);
        if is_merged {
            policy += "\n# The origin may disallow more than the preset. So this file leaves out the preset's tests that expect \"allowed\".\n";
        }
        if !tests.is_empty() {
            policy += &format!("\n# These tests run as if \"mode\" were enforce.\ntests:\n{tests}");
        }
        policy
    }

    /// Adds the hosts with the one that may be missing, whether the origin's rules are merged,
    /// `previous`, and `comment` unless it is empty.
    fn add_fields(&self, text: &str, source: DraftSource, comment: &str) -> String {
        let origin = match source {
            DraftSource::PresetAndOrigin | DraftSource::Origin => "merge",
            _ => "replace",
        };
        let before = self.before_name;
        let previous = if self.is_unchanged {
            format!("previous: {before}")
        } else {
            format!(
                "# previous: {before}   # only with a copy of the robots.txt that every host had for 24 hours before crawlgate"
            )
        };
        // The preset's own comment, of one line, follows if there is room.
        let text = match text.split_once(COMMENT) {
            Some((start, rest)) if !comment.is_empty() => {
                let (own, after) = rest.split_once('\n').unwrap_or_default();
                let has_room = is_comment(&format!("{comment}{own}"));
                start.to_owned() + if has_room { rest } else { after }
            }
            _ => text.to_owned(),
        };
        let lines = comment.lines().map(|line| format!("    {line}\n"));
        let comment = match comment {
            "" => String::new(),
            _ => COMMENT.to_owned() + &join(lines, ""),
        };
        let hosts = yaml_list(self.hosts);
        let missing = self.missing_host().map_or_else(String::new, |host| {
            format!("# {host} is another host. If it shows the same site, add it.\n")
        });
        text.replacen(
            ROBOTS,
            &format!(
                "hosts: {hosts}\n{missing}\nrobots:\n  origin: {origin}\n  {previous}\n{comment}"
            ),
            1,
        )
    }
}

/// The comments before the first record of a robots.txt, such as a legal notice.
fn leading_comment(file: &RobotsFile) -> String {
    let comments = file
        .lines()
        .iter()
        .take_while(|line| line.key_value.is_none())
        .filter_map(|line| line.comment.as_ref())
        .map(|comment| file.text(comment).trim().to_owned());
    join(comments, "\n").trim().to_owned()
}

/// The rules of a preset. Where it enforces, they observe, and the preset's own enforcement follows
/// as a comment.
fn observing_preset(preset: &str) -> String {
    match preset.split_once("\nenforcement:\n") {
        Some((rules, enforcement)) if enforcement.contains(": enforce") => {
            let enforcement = enforcement.trim_end();
            // Purposes have the mode of the site, so that one word enforces all.
            let observed = match enforcement.split_once("  purposes:\n") {
                Some((site, purposes)) if !purposes.contains("mode: enforce, ") => site,
                _ => enforcement,
            };
            let observed = observed
                .trim_end()
                .replace("mode: enforce, ", "")
                .replace("mode: enforce", "mode: observe");
            let lines = enforcement.replace('\n', "\n# ");
            format!(
                "{rules}\nenforcement:\n{observed}\n\n# To enforce, write this in place of \"enforcement\" above:\n# enforcement:\n# {lines}\n"
            )
        }
        _ => format!("{preset}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::{COPY_NOTE, DraftSource, PolicyDraftInputs, Preset};
    use crate::crawlers::Registry;
    use crate::policy::IncludedFiles;
    use crate::policy::model::{EnforcementMode, PreviousRobots};
    use crate::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
    use crate::robots::{Dialect, DialectRules, RobotsFile};
    use crate::verdict::{PolicyDependencies, load_site_at};
    use crate::yaml::SourceFile;
    use clap::ValueEnum;
    use std::sync::Arc;

    const BEFORE: &[u8] = b"User-agent: *\nDisallow: /cart/\n\nUser-agent: GPTBot\n\
                            User-agent: PerplexityBot\nUser-agent: AhrefsBot\nDisallow: /\n";

    /// Asserts that the robots.txt of a site disallows `/` for the crawlers that `BEFORE` names.
    fn assert_still_disallowed(robots: &[u8]) {
        let text = String::from_utf8_lossy(robots);
        let file = RobotsFile::parse(robots);
        let rules = DialectRules::new(&file, Dialect::Rfc9309, &[]);
        for token in ["GPTBot", "PerplexityBot", "AhrefsBot"] {
            assert!(
                !rules.verdict(token.as_bytes(), b"/").allowed,
                "{token}\n{text}"
            );
        }
    }

    /// Asserts that a policy has all tests of its preset, or beside the origin's rules those that
    /// expect `disallowed`.
    fn assert_preset_tests(preset: Option<Preset>, source: DraftSource, tests: usize) {
        let text = preset.map_or("", Preset::text);
        let (_, written) = text.split_once("\ntests:\n").unwrap_or_default();
        let lines = written.lines().filter(|line| line.starts_with("  - "));
        let expected = match source {
            DraftSource::PresetAndOrigin => {
                lines.filter(|line| line.contains("disallowed")).count()
            }
            _ => lines.count(),
        };
        assert_eq!(tests, expected, "{preset:?}");
    }

    /// The source of a draft for two hosts, after a check of the policy with the origin's file.
    fn checked_source(preset: Option<Preset>, before: Option<&[u8]>) -> DraftSource {
        let hosts = ["shop.example".to_owned(), "www.shop.example".to_owned()];
        let is_unchanged = before.is_some();
        let draft = PolicyDraftInputs {
            hosts: &hosts,
            preset,
            before,
            before_name: "before.txt",
            is_unchanged,
        };
        let draft = draft.render();
        assert!(!draft.text.contains(COPY_NOTE), "{}", draft.text);
        let source = SourceFile {
            name: "shop.example.yaml".into(),
            text: draft.text.into(),
        };
        let origin = before.map_or_else(OriginRobotsAvailability::default, |before| {
            OriginRobotsAvailability::Available(Arc::new(OriginRobotsTxt::new("origin", before)))
        });
        let sources = PolicyDependencies {
            origin: &origin,
            files: &IncludedFiles::default(),
        };
        let now = crate::cli::now();
        let (site, findings) = load_site_at("shop", &source, sources, Registry::builtin(), now);
        let site = site.unwrap_or_else(|| panic!("{preset:?}: {findings:?}\n{}", source.text));
        let names: Vec<String> = site
            .policy
            .hosts
            .iter()
            .map(|host| host.value.to_string())
            .collect();
        assert_eq!(names, hosts);
        let previous = site.policy.robots.previous.as_ref();
        assert_eq!(
            matches!(previous, Some(PreviousRobots::File(_))),
            is_unchanged
        );
        if before == Some(BEFORE) && preset != Some(Preset::Staging) {
            assert_still_disallowed(&site.robots_txt.body);
        }
        let enforcement = &site.policy.enforcement;
        assert_ne!(
            enforcement.site.mode,
            Some(EnforcementMode::Enforce),
            "{preset:?}"
        );
        let mut purposes = enforcement.purposes.values();
        assert!(purposes.all(|fields| fields.mode.is_none()), "{preset:?}");
        let asks_for_licence = enforcement
            .purposes
            .values()
            .any(|fields| fields.unlicensed.is_some());
        assert_eq!(asks_for_licence, preset == Some(Preset::Publisher));
        assert!(!source.text.contains("site.example"), "{preset:?}");
        assert_preset_tests(preset, draft.source, site.policy.tests.len());
        draft.source
    }

    #[test]
    fn every_preset_becomes_a_policy_that_observes() {
        for preset in Preset::value_variants() {
            let enforces = preset.text().contains(": enforce");
            assert_eq!(preset.text().contains(COPY_NOTE), enforces, "{preset:?}");
            let sources = [None, Some(&b""[..]), Some(BEFORE)]
                .map(|before| checked_source(Some(*preset), before));
            let expected = match preset {
                Preset::Staging => [DraftSource::Preset; 3],
                _ => [
                    DraftSource::PresetAndOrigin,
                    DraftSource::Preset,
                    DraftSource::PresetAndOrigin,
                ],
            };
            assert_eq!(sources, expected, "{preset:?}");
        }
    }

    /// The policy of a preset beside this robots.txt, and whether it keeps the comment of the file.
    fn draft_beside(preset: Preset, before: &str) -> (String, Option<bool>) {
        let draft = PolicyDraftInputs {
            hosts: &["shop.example".to_owned()],
            preset: Some(preset),
            before: Some(before.as_bytes()),
            before_name: "before.txt",
            is_unchanged: true,
        };
        let draft = draft.render();
        (draft.text, draft.keeps_comment)
    }

    #[test]
    fn leading_comment_is_kept_beside_the_origins_rules() {
        let notice = "# All rights: \"reserved\".\n#\n#   # See below\n\n";
        let rules = "User-agent: * # all\nDisallow: /cart/\n";
        let kept = "All rights: \"reserved\".\n\n# See below";
        for (preset, expected) in [
            (Preset::OpenSite, kept.to_owned()),
            (
                Preset::Publisher,
                format!("{kept}\nText and data mining is reserved"),
            ),
        ] {
            let (text, is_kept) = draft_beside(preset, &format!("{notice}{rules}"));
            assert_eq!(is_kept, Some(true));
            let source = SourceFile {
                name: "shop.example.yaml".into(),
                text: text.into(),
            };
            let sources = PolicyDependencies {
                origin: &OriginRobotsAvailability::default(),
                files: &IncludedFiles::default(),
            };
            let now = crate::cli::now();
            let (site, findings) = load_site_at("shop", &source, sources, Registry::builtin(), now);
            let site = site.unwrap_or_else(|| panic!("{findings:?}"));
            let comment = site.policy.robots.comment.as_deref().unwrap_or_default();
            assert!(comment.starts_with(&expected), "{comment}");
        }
        let nearly_full = format!("# {}\n{rules}", "x".repeat(4_090));
        let (text, is_kept) = draft_beside(Preset::Publisher, &nearly_full);
        assert_eq!(is_kept, Some(true));
        assert!(!text.contains("Text and data"), "{text}");
        let long = format!("# {}\n{rules}", "x".repeat(5_000));
        let (text, is_kept) = draft_beside(Preset::OpenSite, &long);
        assert_eq!((is_kept, text.contains("comment:")), (Some(false), false));
        assert_eq!(draft_beside(Preset::OpenSite, rules).1, None);
    }

    #[test]
    fn missing_www_host_is_named_beside_hosts() {
        for (hosts, missing) in [
            (vec!["shop.example"], Some("www.shop.example")),
            (vec!["www.shop.example"], Some("shop.example")),
            (vec!["www.shop.example", "shop.example"], None),
        ] {
            let hosts: Vec<String> = hosts.into_iter().map(str::to_owned).collect();
            let draft = PolicyDraftInputs {
                hosts: &hosts,
                preset: None,
                before: Some(BEFORE),
                before_name: "before.txt",
                is_unchanged: false,
            };
            assert_eq!(draft.missing_host().as_deref(), missing);
            let text = draft.render().text;
            let (_, text) = text.split_once("hosts: ").expect("hosts");
            let comment = text.lines().nth(1).expect("a line");
            match missing {
                Some(missing) => assert!(comment.starts_with(&format!("# {missing} "))),
                None => assert_eq!(comment, ""),
            }
        }
    }

    #[test]
    fn robots_txt_becomes_a_policy_that_observes() {
        for (before, expected) in [
            (None, DraftSource::Origin),
            (Some(&b""[..]), DraftSource::NoRules),
            (Some(BEFORE), DraftSource::RobotsTxt),
            (
                Some(b"User-agent: *\nDisallow: /\n"),
                DraftSource::RobotsTxt,
            ),
        ] {
            assert_eq!(checked_source(None, before), expected);
        }
    }
}
