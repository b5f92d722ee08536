//! What site owners and crawlers rely on, by subject.

mod anything;
mod dialects;
mod documents;
mod lines;
mod matching;
mod oracle;
mod properties;
mod readback;
mod targets;

use super::target::Resolved;
use super::{Document, Group, Pattern, Rule, RuleSet, TargetScratch};

/// A set from lines such as `Allow: /a`.
fn rules(lines: &[&str]) -> Vec<Rule> {
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
                pattern: Pattern::new(pattern),
            }
        })
        .collect()
}

/// The rule of `lines` that decides about `url`.
fn deciding<'a>(lines: &[&'a str], url: &str) -> Option<&'a str> {
    let mut scratch = TargetScratch::default();
    let target = scratch.normalise(url.as_bytes());
    RuleSet::new(rules(lines))
        .find(target.sent)
        .map(|index| lines[index])
}

/// Whether a rule with this pattern applies to `url`.
fn matches(pattern: &str, url: &str) -> bool {
    let mut scratch = TargetScratch::default();
    Pattern::new(pattern).matches(scratch.normalise(url.as_bytes()).sent)
}

fn sent(url: &[u8]) -> String {
    String::from_utf8(TargetScratch::default().normalise(url).sent.to_vec())
        .expect("a normal target is ASCII")
}

fn resolved(url: &str) -> Option<String> {
    text(TargetScratch::default().normalise(url.as_bytes()).resolved)
}

fn stripped(url: &str) -> Option<String> {
    text(TargetScratch::default().normalise(url.as_bytes()).stripped)
}

fn text(resolved: Option<Resolved<'_>>) -> Option<String> {
    resolved.map(|resolved| {
        String::from_utf8(resolved.target.to_vec()).expect("a normal target is ASCII")
    })
}

fn group(agents: &[&str], lines: &[&str]) -> Group {
    Group {
        agents: agents.iter().map(|agent| (*agent).to_owned()).collect(),
        rules: rules(lines),
        ..Group::default()
    }
}

fn document(groups: Vec<Group>) -> Document {
    Document {
        groups,
        ..Document::default()
    }
}
