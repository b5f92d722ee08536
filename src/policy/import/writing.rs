//! [`Import::text`] writes the imported policy as YAML, as a person would write it. It leaves out
//! sitemaps and licences whose URL a policy does not accept, and rules before the first User-agent
//! line, and adds a note ([`LeftOut`]) for each of them.

use super::comments::Carried;
use super::groups::{Draft, DraftRule, extends};
use super::left_out::LeftOut;
use super::yaml::{list, one_line, scalar, write_comments};
use super::{Import, ImportOptions};
use crate::crawlers::Purpose;
use crate::policy::decode::{is_sitemap, url_mistake};
use crate::robots::{Key, MAX_BYTES};
use std::collections::{BTreeMap, BTreeSet};

impl Import<'_> {
    /// The text of the policy, from its first comments to the section `enforcement`, which only
    /// observes. `purposes` are disallowed, each with the lines whose comments stand above it.
    pub fn text(
        &mut self,
        options: &ImportOptions<'_>,
        drafts: &[Draft],
        purposes: &BTreeMap<Purpose, Vec<usize>>,
        carried: &Carried,
    ) -> String {
        let mut out = String::new();
        write_comments(&mut out, "", &carried.top);
        if !out.is_empty() {
            out.push('\n');
        }
        let top = out.len();
        if let Some(host) = options.host {
            out += &format!("hosts: [{}]\n", scalar(host));
        }
        if !purposes.is_empty() {
            out += "purposes:\n";
            for (purpose, lines) in purposes {
                for number in lines {
                    write_comments(&mut out, "  ", carried.above(*number));
                }
                out += &format!("  {}: disallow\n", purpose.name());
            }
        }
        if out.len() > top {
            out.push('\n');
        }
        out += "robots:\n  origin: replace\n";
        if !drafts.is_empty() {
            out += "  groups:\n";
        }
        let star = drafts
            .iter()
            .find(|draft| draft.agents.iter().any(|agent| agent == "*"));
        // A line that stands in two groups of the policy has its comments once.
        let mut said = BTreeSet::new();
        for draft in drafts {
            for number in &draft.agent_lines {
                write_comments(&mut out, "    ", carried.above(*number));
            }
            self.group(&mut out, draft, star, carried, &mut said);
        }
        self.licenses(&mut out);
        self.sitemaps(&mut out, carried);
        write_comments(&mut out, "", &carried.bottom);
        out + "\n# Change it here: a policy has one `enforcement`, and a second one is an error.\nenforcement:\n  mode: observe   # \
             nothing is refused; metrics and log say what would be\n"
    }

    /// Writes one group. If it may extend `star`, the group for `*` (see `extends`), it does, and
    /// the rules that it inherits are left out. `said` has the lines whose comments are written
    /// already, lest they come twice. A group without rules becomes `allow: /`.
    fn group(
        &self,
        out: &mut String,
        draft: &Draft,
        star: Option<&Draft>,
        carried: &Carried,
        said: &mut BTreeSet<usize>,
    ) {
        *out += &format!("    - agents: {}\n", list(&draft.agents));
        let extended = star.filter(|star| extends(draft, star));
        if extended.is_some() {
            *out += "      extends: \"*\"\n";
        }
        for (key, allow) in [("disallow", false), ("allow", true)] {
            let rules: Vec<&DraftRule> = draft
                .rules
                .iter()
                .filter(|rule| rule.allow == allow)
                .filter(|rule| extended.is_none_or(|star| !star.has(rule)))
                .collect();
            match rules.as_slice() {
                [] => {}
                [rule] if !carried.has_comments(rule.line) => {
                    *out += &format!("      {key}: {}\n", scalar(&rule.text))
                }
                rules => {
                    *out += &format!("      {key}:\n");
                    for rule in rules {
                        let first = said.insert(rule.line);
                        write_comments(
                            out,
                            "        ",
                            if first { carried.above(rule.line) } else { &[] },
                        );
                        let behind = carried
                            .behind_rule
                            .get(&rule.line)
                            .filter(|_| first)
                            .map(|comment| format!("   # {comment}"))
                            .unwrap_or_default();
                        *out += &format!("        - {}{behind}\n", scalar(&rule.text));
                    }
                }
            }
        }
        if draft.rules.is_empty() && extended.is_none() {
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

    /// Writes the licences, each once, wherever they stand: RSL has them for the whole file, and an
    /// owner who appends one below the last group means the whole file, too. A URL that a policy
    /// does not accept becomes a note.
    fn licenses(&mut self, out: &mut String) {
        let mut urls: Vec<String> = Vec::new();
        for (number, url) in self.values(Key::License) {
            match url_mistake(&url) {
                Some((why, _)) => self.note(number, LeftOut::License(one_line(&why))),
                None if !urls.contains(&url) => urls.push(url),
                None => {}
            }
        }
        if !urls.is_empty() {
            *out += &format!("  license: {}\n", list(&urls));
        }
    }

    /// Writes the sitemaps, each once; one that is not an absolute URL becomes a note. Also adds
    /// the notes about what lies beyond 500 KiB, and about lines before the first User-agent.
    fn sitemaps(&mut self, out: &mut String, carried: &Carried) {
        let mut seen = BTreeSet::new();
        let mut head = Some("  sitemaps:\n");
        for (number, url) in self.values(Key::Sitemap) {
            if !is_sitemap(&url) || url.contains('\u{FFFD}') {
                self.note(number, LeftOut::Sitemap(one_line(&url)));
            } else if seen.insert(url.clone()) {
                *out += head.take().unwrap_or_default();
                write_comments(out, "    ", carried.above(number));
                *out += &format!("    - {}\n", scalar(&url));
            }
        }
        if let Some(left) = self
            .file
            .lines()
            .iter()
            .find(|line| line.text.end > MAX_BYTES)
        {
            self.note(left.number, LeftOut::BeyondLimit);
        }
        // Rules before the first agent bind no crawler, and extend no group either.
        let first = self
            .reading
            .agents()
            .next()
            .map_or(usize::MAX, |agent| agent.line);
        for early in self
            .file
            .lines()
            .iter()
            .take_while(|line| line.number < first)
        {
            if let Some(record) = &early.record
                && !matches!(
                    record.key,
                    Key::Sitemap | Key::UserAgent | Key::License | Key::Unknown
                )
            {
                let text = one_line(&self.file.text(&record.whole()));
                self.notes
                    .push((early.number, LeftOut::BeforeFirstGroup(text)));
            }
        }
    }
}
