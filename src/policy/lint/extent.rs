//! Whether one set of conditions holds wherever another does, as far as that can be told piece by piece. Never yes
//! where it is not so; knows nothing of what a rule says.

use crate::policy::model::{Conditions, StatusCondition};
use crate::robots::Pattern;
use crate::yaml::Located;

/// What conditions hold for.
pub struct Extent<'c> {
    conditions: &'c Conditions,
    /// Patterns, and each as a target: what matches that covers the pattern.
    paths: Vec<(Pattern, Vec<u8>)>,
}

impl<'c> Extent<'c> {
    pub fn of(conditions: &'c Conditions) -> Extent<'c> {
        let patterns = conditions.paths.iter().map(|path| Pattern::new(&path.value));
        Extent { conditions, paths: patterns.map(|pattern| (pattern.clone(), pattern.as_target())).collect() }
    }

    /// Whether these hold wherever the others do. Takes every comparison from `budget`, and says no when that is used
    /// up.
    pub fn covers(&self, narrower: &Extent<'_>, budget: &mut usize) -> bool {
        let text = |regex: &Option<Located<String>>| regex.as_ref().map(|regex| regex.value.clone());
        let (ours, theirs) = (&self.conditions.path_regex, &narrower.conditions.path_regex);
        (ours.is_none() || theirs.is_some() && text(ours) == text(theirs))
            && self.lists_cover(narrower, budget)
            && list_covers(&self.paths, &narrower.paths, budget, |(wider, _), (narrower, target)| {
                !narrower.is_empty() && wider.matches(target)
            })
    }

    /// The same of status and type alone.
    fn lists_cover(&self, narrower: &Extent<'_>, budget: &mut usize) -> bool {
        let (wider, narrower) = (self.conditions, narrower.conditions);
        list_covers(&wider.types, &narrower.types, budget, |wider, narrower| {
            let (wider, narrower) = (&wider.value, &narrower.value);
            wider == narrower || wider.strip_suffix('*').is_some_and(|kind| narrower.starts_with(kind))
        }) && list_covers(&wider.status, &narrower.status, budget, |wider, narrower| {
            match (wider.value, narrower.value) {
                (StatusCondition::Class(class), StatusCondition::Code(code)) => u16::from(class) == code / 100,
                // A part of a page is tagged as the page.
                (StatusCondition::Code(200), StatusCondition::Code(206)) => true,
                (wider, narrower) => wider == narrower,
            }
        })
    }
}

/// An empty list does not restrict.
fn list_covers<T>(wider: &[T], narrower: &[T], budget: &mut usize, holds: impl Fn(&T, &T) -> bool) -> bool {
    *budget = budget.saturating_sub(1);
    let left = *budget;
    let mut compared = |wide: &T, narrow: &T| {
        *budget = budget.saturating_sub(1);
        *budget > 0 && holds(wide, narrow)
    };
    left > 0
        && (wider.is_empty()
            || !narrower.is_empty() && narrower.iter().all(|narrow| wider.iter().any(|wide| compared(wide, narrow))))
}
