//! [`witnesses`] makes URLs on which two sites may differ, from the patterns of both. Each pattern
//! gives some examples. A pattern whose rules differ between the sites is also combined with every
//! other pattern, because the longest match decides. The work is bounded: at most `MAX_PAIRS` pairs
//! are combined, and patterns of many wildcards are not tried.

use crate::heads::example_of;
use crate::policy::{Policy, Site};
use crate::printable::join;
use crate::robots::Pattern;
use crate::yaml::Located;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of patterns that are combined.
const MAX_PAIRS: usize = 50_000;
/// Places of patterns that all searches for a common URL may compare.
const MAX_STEPS: usize = 100_000_000;
/// Wildcards of a pattern that gets examples.
const MAX_WILDCARDS: usize = 100;
/// URLs, times the wildcards of patterns with more than that. Matching them takes this long for
/// each kind of crawler.
const MAX_WILD_MATCHES: usize = 1_000_000;

/// URLs to compare two sites on.
#[derive(Default)]
pub struct Witnesses {
    /// Paths with their query.
    pub targets: BTreeSet<String>,
    /// Whether the patterns were too many, or had too many wildcards, to try all.
    pub is_cut: bool,
}

/// URLs on which two sites may differ; `/` is always one. Patterns with more than `MAX_WILDCARDS`
/// wildcards give no URLs, and the more of them there are, the fewer URLs are kept.
pub fn witnesses(sites: [&Site; 2]) -> Witnesses {
    let mut found = Witnesses::default();
    found.targets.insert("/".into());
    let mut budget = Budget {
        pairs: MAX_PAIRS,
        steps: MAX_STEPS,
    };
    let mut wild = 0;
    for mut patterns in [
        sites.map(of_robots),
        sites.map(|site| of_responses(&site.policy)),
    ] {
        for side in &mut patterns {
            side.retain(|pattern, rules| {
                let wildcards = wildcards(pattern);
                let is_wild = wildcards > MAX_WILDCARDS;
                wild += if is_wild { wildcards * rules.len() } else { 0 };
                !is_wild
            });
        }
        found.add(&patterns[0], &patterns[1], &mut budget);
    }
    if let Some(matched) = MAX_WILD_MATCHES.checked_div(wild) {
        found.targets = found.targets.into_iter().take(matched.max(1)).collect();
    }
    found.is_cut = wild > 0 || budget.pairs == 0 || budget.steps == 0;
    found
}

fn wildcards(pattern: &Pattern) -> usize {
    pattern.as_str().matches('*').count()
}

/// What combining patterns may still take.
struct Budget {
    pairs: usize,
    steps: usize,
}

/// Patterns, each with the rules that it stands in.
type Patterns = BTreeMap<Pattern, BTreeSet<String>>;

impl Witnesses {
    /// Adds examples of all patterns, and for each pattern whose rules differ between old and new a
    /// URL that it and each other pattern both match, until the budget is used up.
    fn add(&mut self, old: &Patterns, new: &Patterns, budget: &mut Budget) {
        let all: BTreeSet<&Pattern> = old.keys().chain(new.keys()).collect();
        for pattern in &all {
            self.examples(pattern);
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

/// The patterns of the rules of robots.txt and of the traps, each with the names of the rules that
/// it stands in.
fn of_robots(site: &Site) -> Patterns {
    let mut patterns = Patterns::new();
    for group in &site.document.groups {
        for rule in &group.rules {
            let place = format!(
                "{} {}",
                if rule.allow { "allow" } else { "disallow" },
                group.agents.join(",")
            );
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

/// The patterns of paths in the policy's settings about responses, each with what is set there, and
/// a pattern like `/*.pdf$` for each type with a file extension.
fn of_responses(policy: &Policy) -> Patterns {
    let mut patterns = Patterns::new();
    let mut add = |written: &[Located<String>], place: &str| {
        for pattern in written {
            patterns
                .entry(Pattern::new(pattern))
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
        for (ending, _) in types.filter_map(|kind| example_of(kind)) {
            patterns
                .entry(Pattern::new(&format!("/*.{ending}$")))
                .or_default()
                .insert("type".into());
        }
    }
    patterns
}
