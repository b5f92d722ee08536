//! Rules that Google's library reads otherwise than RFC 9309 says. [`lint_site`] looks for them in
//! a policy, `file.rs` in a robots.txt. Both ask for the URLs that a rule is about ([`urls_of`]).

use super::catalogue as lints;
use super::rules::holds_several_paths;
use crate::policy::regular_expression::is_regular_expression;
use crate::policy::site::{RuleSource, Site};
use crate::robots::{GoogleRules, LITERAL_STAR, RuleSet, TargetScratch, is_read_otherwise};
use crate::yaml::{Diagnostics, Span};

/// Rules whose reading by both dialects is compared.
pub const MAX_COMPARED: usize = 5_000;

/// Reports rules of the policy about one of whose URLs the two readings of their group differ.
/// Groups without a rule that Google reads otherwise are not compared, nor groups beyond 5,000
/// rules in all.
pub fn lint_site(site: &Site, diagnostics: &mut Diagnostics) {
    let mut found = Diagnostics::default();
    let mut compared = 0;
    let mut scratch = TargetScratch::default();
    for (index, group) in site.document.groups.iter().enumerate() {
        if !group.rules.iter().any(is_read_otherwise) {
            continue;
        }
        compared += group.rules.len();
        if compared > MAX_COMPARED {
            break;
        }
        let rfc = site.matcher.rules(index);
        let google = GoogleRules::new(&site.document, &[index]);
        // What another rule makes of the URLs of a rule is said of that one.
        let rules = group.rules.iter().zip(&site.rule_sources[index]);
        for (rule, source) in rules.filter(|(rule, _)| is_read_otherwise(rule)) {
            let RuleSource::Policy(span) = source else {
                continue;
            };
            let pattern = rule.pattern.as_str();
            let differing = urls_of(pattern.as_bytes(), pattern)
                .into_iter()
                .find_map(|url| {
                    let target = scratch.normalise(&url);
                    let by_rfc = allows(rfc, target.sent);
                    (by_rfc != allows(google.rules(), target.written)).then_some((url, by_rfc))
                });
            if let Some((url, by_rfc)) = differing {
                report(
                    &url,
                    by_rfc,
                    *span,
                    spelled_for_both(pattern.as_bytes(), pattern),
                    &mut found,
                );
            }
        }
    }
    super::add_once(found, diagnostics);
}

/// Whether these rules allow a target, which is in the normal form of their dialect. It is allowed
/// where no rule matches.
fn allows(rules: &RuleSet, target: &[u8]) -> bool {
    rules
        .find(target)
        .is_none_or(|rule| rules.rules()[rule].allow)
}

/// Reports a URL about which the readings differ.
pub fn report(
    url: &[u8],
    is_allowed_by_rfc: bool,
    span: Span,
    help: String,
    found: &mut Diagnostics,
) {
    let [one, other] = if is_allowed_by_rfc {
        ["allowed", "disallowed"]
    } else {
        ["disallowed", "allowed"]
    };
    let message = format!(
        "`{}` is {one} by the RFC and {other} by Google's library",
        String::from_utf8_lossy(url)
    );
    lints::DIALECTS_DISAGREE.report(found, span, message, help);
}

/// The help: a spelling on which both dialects agree. `written` is the path in the file, `normal`
/// its normal form.
pub fn spelled_for_both(written: &[u8], normal: &str) -> String {
    if let Some(place) = memchr::memmem::rfind(written, b"/index.htm") {
        let directory = String::from_utf8_lossy(&written[..=place]);
        format!(
            "Google takes an index page for its directory; write `Allow: {directory}$` to say it to all"
        )
    } else if written == normal.as_bytes() {
        "write the path as browsers send it: letters and digits plain, everything else percent-encoded".into()
    } else {
        format!("write the path as browsers send it: `{normal}`")
    }
}

/// URLs that a rule is about, as crawlers send them: percent-encoded, with `x` for each `*`. The
/// first is the path itself, the second its directory, which Google allows along with an index
/// page. Empty where the rule is no path, a list, or a regular expression, about which other lints
/// speak.
pub fn urls_of(written: &[u8], normal: &str) -> Vec<Vec<u8>> {
    let text = written.strip_suffix(b"$").unwrap_or(written);
    // Other lints say what a list or a regular expression is meant to match.
    let is_path = text.starts_with(b"/") || text.starts_with(b"*");
    if !is_path || holds_several_paths(normal) || is_regular_expression(normal) {
        return Vec::new();
    }
    let mut plain: Vec<u8> = if text.starts_with(b"*") {
        b"/".to_vec()
    } else {
        Vec::new()
    };
    plain.extend(
        text.iter()
            .map(|octet| if *octet == b'*' { b'x' } else { *octet }),
    );
    let mut scratch = TargetScratch::default();
    let sent: Vec<u8> = scratch
        .normalise(&plain)
        .sent
        .iter()
        .map(|octet| if *octet == LITERAL_STAR { b'*' } else { *octet })
        .collect();
    let directory = sent
        .iter()
        .rposition(|octet| *octet == b'/')
        .map(|slash| sent[..=slash].to_vec());
    std::iter::once(sent).chain(directory).collect()
}
