//! Rules of `indexing` that change nothing, because another one holds wherever they do: every rule that matches
//! contributes and the strictest wins. Either they say the same, or they loosen it.

use super::catalogue as lints;
use super::extent::Extent;
use super::words;
use crate::indexing::Scope;
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
        if loosened(rule, || wider.iter().map(|(_, (wider, _))| *wider), diagnostics) {
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

/// Whether a rule adds nothing for anybody to what a wider one says.
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
fn loosened<'r, I: Iterator<Item = &'r IndexingRule>>(
    rule: &IndexingRule,
    wider: impl Fn() -> I,
    diagnostics: &mut Diagnostics,
) -> bool {
    let mut any = false;
    for (scope, _) in rule.tags.iter() {
        let words = words::of(rule, scope);
        let found = words.iter().filter(|word| word.may_loosen()).find_map(|word| {
            let wider = wider().find(|wider| {
                let said = [Scope::All, scope.clone()].into_iter().filter_map(|scope| wider.tags.of(&scope));
                said.into_iter().any(|said| word.undone_by(said).is_some())
            })?;
            Some((word, wider))
        });
        let Some((word, wider)) = found else { continue };
        any = true;
        diagnostics.push(
            lints::CONTRADICTORY_TAG
                .at(
                    word.written.text.span,
                    format!("`{}` has no effect: another rule holds wherever this one does, and says more", word.text),
                )
                .related(wider.span, "every rule that matches contributes, and the strictest wins")
                .help("remove it, and nothing changes; to restrict these pages less, take them out of the other rule with `not`"),
        );
    }
    any
}
