//! [`witnesses`] makes URLs on which two sites may differ, from the patterns of both. Each pattern gives some examples.
//! A pattern whose rules differ between the sites is also combined with every other pattern, because the longest match
//! decides. At most `MAX_PAIRS` pairs are combined.

use crate::policy::{Policy, Site};
use crate::robots::Pattern;
use crate::yaml::Located;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of patterns that are combined.
const MAX_PAIRS: usize = 50_000;

/// URLs to compare two sites on.
#[derive(Debug, Default)]
pub struct Witnesses {
    /// Paths with their query.
    pub targets: BTreeSet<String>,
    /// Whether there were at least as many pairs of patterns as are combined at the most.
    pub is_cut: bool,
}

/// URLs on which two sites may differ.
pub fn witnesses(sites: [&Site; 2]) -> Witnesses {
    let mut found = Witnesses::default();
    found.targets.insert("/".into());
    let mut budget = MAX_PAIRS;
    for [old, new] in [sites.map(of_robots), sites.map(|site| of_responses(&site.policy))] {
        found.add(&old, &new, &mut budget);
    }
    found.is_cut = budget == 0;
    found
}

/// Patterns, each with the rules that it stands in.
type Patterns = BTreeMap<Pattern, BTreeSet<String>>;

impl Witnesses {
    fn add(&mut self, old: &Patterns, new: &Patterns, budget: &mut usize) {
        let all: BTreeSet<&Pattern> = old.keys().chain(new.keys()).collect();
        for pattern in &all {
            self.examples(pattern);
        }
        for changed in all.iter().filter(|pattern| old.get(**pattern) != new.get(**pattern)) {
            for other in all.iter().filter(|other| *other != changed) {
                if *budget == 0 {
                    return;
                }
                *budget -= 1;
                // URLs that two plain patterns both match begin with the longer one, which has its own examples.
                if changed.as_str().contains(['*', '$']) || other.as_str().contains(['*', '$']) {
                    self.targets.extend(changed.common_target(other));
                }
            }
        }
    }

    /// Adds examples of a pattern. More than one, because a longer pattern may match the shortest.
    fn examples(&mut self, pattern: &Pattern) {
        if pattern.is_empty() {
            return;
        }
        for fill in ["", "x", "crawlgate-7"] {
            let example = pattern.example(fill);
            if !pattern.as_str().ends_with('$') {
                self.targets.insert(format!("{example}x"));
                self.targets.insert(format!("{example}/crawlgate-7"));
            }
            self.targets.insert(example);
        }
    }
}

/// The rules of the file and the traps.
fn of_robots(site: &Site) -> Patterns {
    let mut patterns = Patterns::new();
    for group in &site.document.groups {
        for rule in &group.rules {
            let place = format!("{} {}", if rule.allow { "allow" } else { "disallow" }, group.agents.join(","));
            patterns.entry(rule.pattern.clone()).or_default().insert(place);
        }
    }
    for trap in site.traps.rules() {
        patterns.entry(trap.pattern.clone()).or_default().insert("trap".into());
    }
    patterns
}

/// The patterns of the conditions on responses.
fn of_responses(policy: &Policy) -> Patterns {
    let mut patterns = Patterns::new();
    let mut add = |written: &[Located<String>], place: &str| {
        for pattern in written {
            patterns.entry(Pattern::new(&pattern.value)).or_default().insert(place.to_owned());
        }
    };
    for rule in &policy.indexing {
        let said: Vec<&str> = rule.written.iter().map(|written| written.text.value.as_str()).collect();
        add(&rule.when.paths, &said.join(", "));
        if let Some(unless) = &rule.unless {
            add(&unless.paths, "not");
        }
    }
    policy.retire.iter().for_each(|retired| add(&retired.paths, "retire"));
    policy.tdm.iter().for_each(|rule| add(&rule.paths, if rule.reserved { "tdm 1" } else { "tdm 0" }));
    let signals = &policy.robots.signals;
    signals.licenses.iter().for_each(|license| add(&license.paths, &license.url.value));
    let of_groups = policy.robots.groups.iter().flat_map(|group| &group.signals.content_usage);
    for usage in signals.content_usage.iter().chain(of_groups) {
        add(&usage.paths, "usage");
    }
    patterns
}
