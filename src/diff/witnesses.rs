//! [`find_witness_urls`] makes URLs on which an old and a new site may differ, so that `crawlgate
//! diff` can compare the sites without a list of URLs. Each path pattern in the rules gives some
//! example URLs. If the old and the new site have different rules for a pattern, the module also
//! makes URLs that match this and another pattern. For such a URL the longer pattern decides. The
//! work is bounded, so a difference may be missed if there are very many patterns or wildcards.

use crate::heads::example_extension;
use crate::policy::{Policy, Site};
use crate::printable::join;
use crate::robots::PathPattern;
use crate::yaml::Located;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of patterns that are combined.
const MAX_PAIRS: usize = 50_000;
/// Steps of all searches for a common URL: the product of the lengths of two patterns.
const MAX_STEPS: usize = 100_000_000;
/// Patterns with more wildcards get no examples.
const MAX_WILDCARDS: usize = 100;
/// URLs, times the wildcards of patterns that have too many: matching them takes that long for each
/// class of crawlers.
const MAX_WILD_MATCHES: usize = 1_000_000;

/// URLs to compare two sites on.
#[derive(Default)]
pub struct WitnessUrls {
    /// Paths with their query.
    pub targets: BTreeSet<String>,
    /// Whether the patterns were too many, or had too many wildcards, to try all.
    pub is_cut: bool,
}

/// Makes URLs on which two sites may differ, and `/`. Patterns with too many wildcards give no URLs,
/// and the more of them there are, the fewer URLs are kept.
pub fn find_witness_urls(sites: [&Site; 2]) -> WitnessUrls {
    let mut found = WitnessUrls::default();
    found.targets.insert("/".into());
    let mut budget = SearchBudget {
        pairs: MAX_PAIRS,
        steps: MAX_STEPS,
    };
    let mut wild = 0;
    for mut patterns in [
        sites.map(robots_patterns),
        sites.map(|site| response_patterns(&site.policy)),
    ] {
        for side in &mut patterns {
            side.retain(|pattern, rules| {
                let wildcards = pattern.as_str().matches('*').count();
                let is_wild = wildcards > MAX_WILDCARDS;
                wild += if is_wild { wildcards * rules.len() } else { 0 };
                !is_wild
            });
        }
        found.add_patterns(&patterns[0], &patterns[1], &mut budget);
    }
    if let Some(matched) = MAX_WILD_MATCHES.checked_div(wild) {
        found.targets = found.targets.into_iter().take(matched.max(1)).collect();
    }
    found.is_cut = wild > 0 || budget.pairs == 0 || budget.steps == 0;
    found
}

/// The work that is left for combining patterns.
struct SearchBudget {
    pairs: usize,
    steps: usize,
}

/// The names of the rules that have a pattern.
type RulesByPattern = BTreeMap<PathPattern, BTreeSet<String>>;

impl WitnessUrls {
    /// Adds examples of all patterns. For each pattern whose rules differ, also adds URLs that it
    /// and another pattern both match, until the budget is used up.
    fn add_patterns(
        &mut self,
        old: &RulesByPattern,
        new: &RulesByPattern,
        budget: &mut SearchBudget,
    ) {
        let all: BTreeSet<&PathPattern> = old.keys().chain(new.keys()).collect();
        for pattern in &all {
            self.add_examples(pattern);
        }
        for changed in all
            .iter()
            .filter(|pattern| old.get(**pattern) != new.get(**pattern))
        {
            for other in all.iter().filter(|other| *other != changed) {
                if budget.pairs == 0 || budget.steps == 0 {
                    return;
                }
                budget.pairs -= 1;
                // URLs that two plain patterns both match begin with the longer one, which has its
                // own examples.
                if changed.as_str().contains(['*', '$']) || other.as_str().contains(['*', '$']) {
                    budget.steps = budget
                        .steps
                        .saturating_sub(changed.as_str().len() * other.as_str().len());
                    self.targets.extend(changed.common_target(other));
                }
            }
        }
    }

    /// Adds several examples of a pattern, because a longer pattern may match the shortest one.
    fn add_examples(&mut self, pattern: &PathPattern) {
        if pattern.is_empty() {
            return;
        }
        for fill in ["", "x", "crawlgate-7"] {
            let example = pattern.example_target(fill);
            if !pattern.as_str().ends_with('$') {
                self.targets.insert(format!("{example}x"));
                self.targets.insert(format!("{example}/crawlgate-7"));
            }
            self.targets.insert(example);
        }
    }
}

/// The patterns of robots.txt and of the traps.
fn robots_patterns(site: &Site) -> RulesByPattern {
    let mut patterns = RulesByPattern::new();
    for group in &site.document.groups {
        for rule in &group.rules {
            let place = format!("{} {}", rule.allow, group.agents.join(","));
            patterns
                .entry(rule.pattern.clone())
                .or_default()
                .insert(place);
        }
    }
    for trap in site.traps.rules() {
        patterns
            .entry(trap.pattern.clone())
            .or_default()
            .insert("trap".into());
    }
    patterns
}

/// The patterns of the policy's settings about responses, and a pattern like `/*.pdf$` for each type
/// with a file extension.
fn response_patterns(policy: &Policy) -> RulesByPattern {
    let mut patterns = RulesByPattern::new();
    let mut add = |written: &[Located<String>], place: &str| {
        for pattern in written {
            patterns
                .entry(PathPattern::new(pattern))
                .or_default()
                .insert(place.to_owned());
        }
    };
    for rule in &policy.indexing {
        let directives = join(rule.written.iter().map(|written| &written.text.value), ", ");
        add(&rule.when.paths, &directives);
        if let Some(unless) = &rule.unless {
            add(&unless.paths, "not");
        }
    }
    for retired in &policy.retire {
        add(&retired.paths, "retire");
    }
    for rule in &policy.tdm {
        add(&rule.paths, if rule.reserved { "tdm 1" } else { "tdm 0" });
    }
    let signals = &policy.robots.signals;
    for license in &signals.licenses {
        add(&license.paths, &license.url);
    }
    let of_groups = policy
        .robots
        .groups
        .iter()
        .flat_map(|group| &group.signals.content_usage);
    for usage in signals.content_usage.iter().chain(of_groups) {
        add(&usage.paths, "usage");
    }
    for rule in &policy.indexing {
        let types = std::iter::once(&rule.when)
            .chain(&rule.unless)
            .flat_map(|conditions| &conditions.types);
        for (ending, _) in types.filter_map(|kind| example_extension(kind)) {
            patterns
                .entry(PathPattern::new(&format!("/*.{ending}$")))
                .or_default()
                .insert("type".into());
        }
    }
    patterns
}
