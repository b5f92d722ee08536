//! The lint of robots.txt rules that Google's open-source library reads differently from RFC 9309.
//! The lint judges sample URLs of each rule ([`sample_urls`]) in both ways, and reports a
//! difference. [`lint`] does this for the policy of a site, and `file/mod.rs` for a robots.txt
//! file.

use super::catalogue as lints;
use super::rules::holds_several_paths;
use crate::policy::regular_expression::looks_like_regex;
use crate::policy::site::{RuleSource, Site};
use crate::robots::{GoogleRules, LITERAL_STAR, RuleSet, TargetScratch, differs_for_google};
use crate::yaml::{Diagnostics, SourceSpan};

/// The most rules that are compared.
pub const MAX_COMPARED: usize = 5_000;

/// Reports rules of the policy with a sample URL about which the two readings of their group
/// differ.
pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    let mut found = Diagnostics::default();
    let mut compared = 0;
    let mut scratch = TargetScratch::default();
    for (index, group) in site.document.groups.iter().enumerate() {
        if !group.rules.iter().any(differs_for_google) {
            continue;
        }
        compared += group.rules.len();
        if compared > MAX_COMPARED {
            break;
        }
        let rfc = site.matcher.rules(index);
        let google = GoogleRules::new(&site.document, &[index]);
        let rules = group.rules.iter().zip(&site.rule_sources[index]);
        for (rule, source) in rules.filter(|(rule, _)| differs_for_google(rule)) {
            let RuleSource::Policy(span) = source else {
                continue;
            };
            let pattern = rule.pattern.as_str();
            let differing = sample_urls(pattern.as_bytes(), pattern)
                .into_iter()
                .find_map(|url| {
                    let target = scratch.normalise(&url);
                    let by_rfc = is_allowed(rfc, target.sent);
                    (by_rfc != is_allowed(google.rules(), target.written)).then_some((url, by_rfc))
                });
            if let Some((url, by_rfc)) = differing {
                report_disagreement(
                    &url,
                    by_rfc,
                    *span,
                    common_spelling_help(pattern.as_bytes(), pattern),
                    &mut found,
                );
            }
        }
    }
    super::add_deduplicated(found, diagnostics);
}

/// Whether these rules allow a target in the normal form of their dialect.
fn is_allowed(rules: &RuleSet, target: &[u8]) -> bool {
    rules
        .find(target)
        .is_none_or(|rule| rules.rules()[rule].allow)
}

/// Reports a URL about which the readings differ.
pub fn report_disagreement(
    url: &[u8],
    is_allowed_by_rfc: bool,
    span: SourceSpan,
    help: String,
    found: &mut Diagnostics,
) {
    let [one, other] = if is_allowed_by_rfc {
        ["allowed", "disallowed"]
    } else {
        ["disallowed", "allowed"]
    };
    let message = format!(
        "\"{}\" is {one} under RFC 9309 and {other} by Google's library",
        String::from_utf8_lossy(url)
    );
    lints::DIALECTS_DISAGREE.report(found, span, message, help);
}

/// The help: how to write a path so that both dialects agree. `normal` is its normal form.
pub fn common_spelling_help(written: &[u8], normal: &str) -> String {
    if let Some(place) = memchr::memmem::rfind(written, b"/index.htm") {
        let directory = String::from_utf8_lossy(&written[..=place]);
        format!(
            "Google applies a rule for an index page to its directory; write \"Allow: \
             {directory}$\" so that all crawlers do the same"
        )
    } else if written == normal.as_bytes() {
        "write the path as browsers send it: letters and digits as they are, everything else \
         percent-encoded"
            .into()
    } else {
        format!("write the path as browsers send it: \"{normal}\"")
    }
}

/// URLs that a rule matches, as crawlers send them: its path with `x` for each `*`, and the
/// directory of the path, which Google allows along with an index page. Empty for what is no path:
/// other lints report that.
pub fn sample_urls(written: &[u8], normal: &str) -> Vec<Vec<u8>> {
    let text = written.strip_suffix(b"$").unwrap_or(written);
    let is_path = text.starts_with(b"/") || text.starts_with(b"*");
    if !is_path || holds_several_paths(normal) || looks_like_regex(normal) {
        return Vec::new();
    }
    let slash = text.starts_with(b"*").then_some(b'/');
    let filled = text
        .iter()
        .map(|byte| if *byte == b'*' { b'x' } else { *byte });
    let plain: Vec<u8> = slash.into_iter().chain(filled).collect();
    let mut scratch = TargetScratch::default();
    let sent: Vec<u8> = scratch
        .normalise(&plain)
        .sent
        .iter()
        .map(|byte| if *byte == LITERAL_STAR { b'*' } else { *byte })
        .collect();
    let directory = memchr::memrchr(b'/', &sent).map(|slash| sent[..=slash].to_vec());
    std::iter::once(sent).chain(directory).collect()
}
