//! [`Importer::render`] writes the YAML of a policy that was imported from a robots.txt. It leaves
//! out sitemaps and licences with invalid URLs, and rules before the first User-agent line. For
//! each part that is left out it adds a note ([`ImportNote`]).

use super::comments::ImportedComments;
use super::groups::{ImportedGroup, ImportedRule};
use super::import_note::ImportNote;
use super::yaml::{one_line, write_comments, yaml_list, yaml_scalar};
use super::{Importer, OBSERVE};
use crate::policy::decode::{is_sitemap, url_mistake};
use crate::robots::RobotsKey;
use RobotsKey::*;
use std::collections::BTreeSet;

impl Importer<'_> {
    /// Renders the whole policy.
    pub fn render(
        &self,
        host: Option<&str>,
        drafts: &[ImportedGroup],
        comments: &ImportedComments,
    ) -> String {
        let mut out = String::new();
        write_comments(&mut out, "", &comments.top);
        if !out.is_empty() {
            out.push('\n');
        }
        if let Some(host) = host {
            out += &format!("hosts: [{}]\n\n", yaml_scalar(host));
        }
        out += "robots:\n  origin: replace\n";
        if !drafts.is_empty() {
            out += "  groups:\n";
        }
        let mut commented_lines = BTreeSet::new();
        for draft in drafts {
            for number in &draft.agent_lines {
                write_comments(&mut out, "    ", comments.above(*number));
            }
            self.write_group(&mut out, draft, comments, &mut commented_lines);
        }
        self.write_licenses(&mut out);
        self.write_sitemaps(&mut out, comments);
        write_comments(&mut out, "", &comments.bottom);
        out + "\n# To enforce these rules, change \"mode\" below.\n" + OBSERVE
    }

    /// Writes one group. A group without rules becomes `allow: /`. Rules of one line can be in
    /// several groups: `commented_lines` are the lines whose comments are already written.
    fn write_group(
        &self,
        out: &mut String,
        draft: &ImportedGroup,
        comments: &ImportedComments,
        commented_lines: &mut BTreeSet<usize>,
    ) {
        *out += &format!("    - agents: {}\n", yaml_list(&draft.agents));
        for (key, allow) in [("disallow", false), ("allow", true)] {
            let rules: Vec<&ImportedRule> = draft
                .rules
                .iter()
                .filter(|rule| rule.allow == allow)
                .collect();
            match rules.as_slice() {
                [] => {}
                [rule] if !comments.has_comments(rule.line) => {
                    *out += &format!("      {key}: {}\n", yaml_scalar(&rule.text))
                }
                rules => {
                    *out += &format!("      {key}:\n");
                    for rule in rules {
                        let first = commented_lines.insert(rule.line);
                        if first {
                            write_comments(out, "        ", comments.above(rule.line));
                        }
                        let behind = comments
                            .behind_rule
                            .get(&rule.line)
                            .filter(|_| first)
                            .map(|comment| format!("   # {comment}"))
                            .unwrap_or_default();
                        *out += &format!("        - {}{behind}\n", yaml_scalar(&rule.text));
                    }
                }
            }
        }
        if draft.rules.is_empty() {
            *out += "      allow: /\n";
        }
        if let Some(delay) = &draft.crawl_delay {
            *out += &format!("      crawl_delay: {delay}\n");
        }
        draft.signals.write(out);
        for (_, text) in &draft.left_out {
            *out += &format!("      # left out: {text}\n");
        }
    }

    /// Writes the licences, each once. A licence is for the whole file even in a group: an owner
    /// who appends one below the last group means the whole file.
    fn write_licenses(&self, out: &mut String) {
        let mut urls: Vec<String> = Vec::new();
        for (number, url) in self.values(License) {
            match url_mistake(&url) {
                Some((why, _)) => self.add_note(number, ImportNote::License(one_line(&why))),
                None if !urls.contains(&url) => urls.push(url),
                None => {}
            }
        }
        if !urls.is_empty() {
            *out += &format!("  license: {}\n", yaml_list(&urls));
        }
    }

    /// Writes the sitemaps, each once. Also adds the notes about lines before the first User-agent
    /// line.
    fn write_sitemaps(&self, out: &mut String, comments: &ImportedComments) {
        let mut seen = BTreeSet::new();
        let mut head = Some("  sitemaps:\n");
        for (number, url) in self.values(Sitemap) {
            if !is_sitemap(&url) || url.contains('\u{FFFD}') {
                self.add_note(number, ImportNote::Sitemap(one_line(&url)));
            } else if seen.insert(url.clone()) {
                *out += head.take().unwrap_or_default();
                write_comments(out, "    ", comments.above(number));
                *out += &format!("    - {}\n", yaml_scalar(&url));
            }
        }
        let first = self
            .reading
            .agent_lines()
            .next()
            .map_or(usize::MAX, |agent| agent.line);
        for early in self
            .file
            .lines()
            .iter()
            .take_while(|line| line.number < first)
        {
            if let Some(record) = &early.key_value
                && !matches!(record.key, Sitemap | UserAgent | License | Unknown)
            {
                self.add_note(
                    early.number,
                    ImportNote::BeforeFirstGroup(one_line(&self.file.text(&record.whole()))),
                );
            }
        }
    }
}
