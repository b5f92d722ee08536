//! Rules of `indexing` that change nothing, because another one holds wherever they do: every rule that matches
//! contributes and the strictest wins. Either they say the same, or they loosen it.

use super::catalogue as lints;
use super::extent::Extent;
use super::words;
use crate::indexing::{Directive, Scope};
use crate::policy::model::IndexingRule;
use crate::yaml::Diagnostics;

/// Comparisons of patterns, types and status codes in all rules of a policy: the time this takes does not grow with the
/// square of their number.
pub(super) const COMPARISONS: usize = 250_000;

/// What reading a pattern takes of them.
const PATTERN: usize = 8;

pub(super) fn lint(rules: &[IndexingRule], left: &mut usize, diagnostics: &mut Diagnostics) {
    let mut extents = Vec::new();
    for rule in rules {
        // Reading a pattern takes as long as some comparisons do.
        *left = left.saturating_sub(PATTERN * rule.when.paths.len());
        if *left == 0 {
            break;
        }
        extents.push(Extent::of(&rule.when));
    }
    for (place, (rule, extent)) in rules.iter().zip(&extents).enumerate() {
        let others = rules
            .iter()
            .zip(&extents)
            .enumerate()
            .filter(|(other, (wider, _))| *other != place && wider.unless.is_none());
        let wider: Vec<_> = others.filter(|(_, (_, wider))| wider.covers(extent, left)).collect();
        let is_all_of = |wider: &Extent<'_>| extent.covers(wider, left) || *left == 0;
        if loosened(rule, &wider, is_all_of, diagnostics) {
            continue;
        }
        let found = wider.iter().find(|(other, (wider, theirs))| {
            // Of two that are the same the later one.
            (*other < place || !extent.covers(theirs, left)) && *left > 0 && says_it_all(wider, rule)
        });
        if let Some((_, (wider, _))) = found {
            let says = if wider.tags == rule.tags { "says the same" } else { "restricts no less" };
            diagnostics.push(
                lints::REDUNDANT_TAG
                    .at(
                        rule.span,
                        format!("this changes nothing: another rule holds wherever this one does, and {says}"),
                    )
                    .related(wider.span, "it is said here"),
            );
        }
        if *left == 0 {
            return;
        }
    }
}

/// Whether a rule adds nothing for any crawler to what a wider one says.
fn says_it_all(wider: &IndexingRule, rule: &IndexingRule) -> bool {
    let mut both = wider.tags.clone();
    both.merge(&rule.tags);
    let bots = rule.tags.iter().map(|(scope, _)| match scope {
        Scope::All => "*",
        Scope::Bot(name) => name,
    });
    let mut bots = bots.peekable();
    bots.peek().is_some()
        && rule.origin_tags.is_none()
        && bots.all(|bot| both.effective(bot) == wider.tags.effective(bot))
}

/// Finds what a rule says less strictly than a wider one; whether there is any.
fn loosened(
    rule: &IndexingRule,
    wider: &[(usize, (&IndexingRule, &Extent<'_>))],
    mut is_all_of: impl FnMut(&Extent<'_>) -> bool,
    diagnostics: &mut Diagnostics,
) -> bool {
    let mut any = false;
    for (scope, _) in rule.tags.iter() {
        let words = words::of(rule, scope);
        let found = words.iter().filter(|word| word.may_loosen()).find_map(|word| {
            wider.iter().find_map(|(_, (wider, theirs))| {
                let said = [Scope::All, scope.clone()].into_iter().find_map(|scope| {
                    let by = word.undone_by(wider.tags.of(&scope)?)?;
                    Some((scope, by))
                });
                said.map(|by| (word, *wider, *theirs, by))
            })
        });
        let Some((word, wider, theirs, (by_scope, by))) = found else { continue };
        any = true;
        let less = less_restricted(rule, scope, wider, (&by_scope, by), is_all_of(theirs));
        diagnostics.push(
            lints::CONTRADICTORY_TAG
                .at(
                    word.written.text.span,
                    format!("`{}` has no effect: another rule holds wherever this one does, and says more", word.text),
                )
                .related(wider.span, "every rule that matches contributes, and the strictest wins")
                .help(format!("remove it, and what crawlers go by stays the same; {less}")),
        );
    }
    any
}

/// How to loosen what is said to one scope, and nothing else of what the wider rule says.
fn less_restricted(
    rule: &IndexingRule,
    scope: &Scope,
    wider: &IndexingRule,
    (by_scope, by): (&Scope, &Directive),
    is_all_of_it: bool,
) -> String {
    let has_rest = wider.origin_tags.is_some()
        || wider.tags.iter().any(|(scope, said)| scope != by_scope || said.iter().any(|other| other != by));
    // A `not` has no exceptions of its own: pages that this rule excepts would be taken out of the other one, too.
    let is_apart = !is_all_of_it && rule.unless.is_none();
    let rest = if has_rest { ", and say the rest of it again for them" } else { "" };
    match scope {
        Scope::Bot(bot) if *by_scope == Scope::All && is_apart => format!(
            "to restrict these pages less for `{bot}` alone, take them out of the other rule with `not`, and name the \
             others here, with what it says{rest}"
        ),
        Scope::Bot(bot) if *by_scope == Scope::All => format!(
            "to restrict these pages less for `{bot}` alone, name the others in the other rule, in place of `\"*\"`"
        ),
        _ if is_apart => format!("to restrict these pages less, take them out of the other rule with `not`{rest}"),
        _ => "to restrict these pages less, change the other rule itself".to_owned(),
    }
}
