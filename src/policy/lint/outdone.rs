//! Rules of `indexing` that change nothing, because another one holds wherever they do: every rule that matches
//! contributes and the strictest wins. Either they say the same, or they loosen it.

use super::catalogue as lints;
use super::tags::covers;
use crate::indexing::{Directive, Scope};
use crate::policy::model::IndexingRule;
use crate::yaml::Diagnostics;

/// Rules that are looked at, so that the time this takes does not grow with the square of their number.
const LOOKED_AT: usize = 256;

pub(super) fn lint(rules: &[IndexingRule], diagnostics: &mut Diagnostics) {
    for (place, rule) in rules.iter().enumerate().take(LOOKED_AT) {
        let wider = || {
            let others = rules.iter().enumerate().filter(move |(other, _)| *other != place);
            others.filter(|(_, wider)| wider.unless.is_none() && covers(&wider.when, &rule.when))
        };
        if loosened(rule, || wider().map(|(_, wider)| wider), diagnostics) {
            continue;
        }
        // Of two that are the same the later one.
        let mut counts = wider().filter(|(other, wider)| *other < place || !covers(&rule.when, &wider.when));
        if let Some((_, wider)) = counts.find(|(_, wider)| says_it_all(wider, rule)) {
            diagnostics.push(
                lints::REDUNDANT_TAG
                    .at(rule.span, "this changes nothing: another rule holds wherever this one does, and says the same")
                    .related(wider.span, "it is said here"),
            );
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
    for (scope, said) in rule.tags.iter() {
        let mut looser = said.iter().filter(|directive| has_stricter(directive));
        let found = looser.find_map(|directive| {
            let wider = wider().find(|wider| outdoes(wider, scope, directive))?;
            Some((directive, wider))
        });
        let Some((directive, wider)) = found else { continue };
        any = true;
        let written = rule.written.iter().find(|written| written.scope == *scope);
        let place = written.map_or(rule.span, |written| written.text.span);
        diagnostics.push(
            lints::CONTRADICTORY_TAG
                .at(
                    place,
                    format!("`{directive}` has no effect: another rule holds wherever this one does, and says more"),
                )
                .related(wider.span, "every rule that matches contributes, and the strictest wins")
                .help("take these paths out of the other rule with `not`, or remove this one"),
        );
    }
    any
}

/// Whether there is something stricter of its kind.
fn has_stricter(directive: &Directive) -> bool {
    use Directive::{All, MaxImagePreview, MaxSnippet, MaxVideoPreview, UnavailableAfter};
    matches!(directive, All | MaxSnippet(_) | MaxImagePreview(_) | MaxVideoPreview(_) | UnavailableAfter(_))
}

/// Whether a wider rule says something of the same kind to the same bots, and more strictly.
fn outdoes(wider: &IndexingRule, scope: &Scope, directive: &Directive) -> bool {
    let mut said = wider.tags.of(scope).cloned().unwrap_or_default();
    said.extend(&wider.tags.of(&Scope::All).cloned().unwrap_or_default());
    let restricts = |known: &Directive| match directive {
        Directive::All => *known != Directive::All,
        _ => known.name() == directive.name() && known != directive,
    };
    let mut both = said.clone();
    both.insert(directive.clone());
    said.iter().any(restricts) && both == said
}
