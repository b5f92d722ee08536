//! Tests of reading, matching and writing robots.txt, one module for each subject, with helpers
//! that they share.

mod anything;
mod dialects;
mod documents;
mod lines;
mod matching;
mod oracle;
mod properties;
mod readback;
mod targets;

use super::target::ResolvedTarget;
use super::{PathPattern, RobotsDocument, Rule, RuleGroup, RuleSet, TargetScratch};

/// A set from lines such as `Allow: /a`.
fn parse_rules(lines: &[&str]) -> Vec<Rule> {
    lines
        .iter()
        .map(|line| {
            let (key, pattern) = line.split_once(':').expect("a rule has a colon");
            let allow = match key {
                "Allow" => true,
                "Disallow" => false,
                _ => panic!("{line} is no rule"),
            };
            Rule {
                allow,
                pattern: PathPattern::new(pattern),
            }
        })
        .collect()
}

/// The rule of `lines` that decides about `url`.
fn deciding_line<'a>(lines: &[&'a str], url: &str) -> Option<&'a str> {
    let mut scratch = TargetScratch::default();
    let target = scratch.normalise(url.as_bytes());
    RuleSet::new(parse_rules(lines))
        .find(target.sent)
        .map(|index| lines[index])
}

/// Whether a rule with this pattern applies to `url`.
fn pattern_matches(pattern: &str, url: &str) -> bool {
    let mut scratch = TargetScratch::default();
    PathPattern::new(pattern).matches(scratch.normalise(url.as_bytes()).sent)
}

fn normalised_target(url: &[u8]) -> String {
    String::from_utf8(TargetScratch::default().normalise(url).sent.to_vec())
        .expect("a normal target is ASCII")
}

fn resolved_target(url: &str) -> Option<String> {
    target_text(TargetScratch::default().normalise(url.as_bytes()).resolved)
}

fn stripped_target(url: &str) -> Option<String> {
    target_text(TargetScratch::default().normalise(url.as_bytes()).stripped)
}

fn target_text(resolved: Option<ResolvedTarget<'_>>) -> Option<String> {
    resolved.map(|resolved| {
        String::from_utf8(resolved.target.to_vec()).expect("a normal target is ASCII")
    })
}

fn rule_group(agents: &[&str], lines: &[&str]) -> RuleGroup {
    RuleGroup {
        agents: agents.iter().map(|agent| (*agent).to_owned()).collect(),
        rules: parse_rules(lines),
        ..RuleGroup::default()
    }
}

fn document_with(groups: Vec<RuleGroup>) -> RobotsDocument {
    RobotsDocument {
        groups,
        ..RobotsDocument::default()
    }
}
