//! Lints of `indexing`: directives that contradict each other, that no crawler documents or whose
//! date has passed; names that are no crawler's.

use super::{agents, catalogue as lints, words};
use crate::crawlers::Registry;
use crate::indexing::engines::{self, Reads};
use crate::indexing::{Directive, Directives, Flag, Scope, is_bots_name};
use crate::policy::model::IndexingRule;
use crate::policy::site::Site;
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, Span, nearest};

/// Reports directives of each rule of `indexing` that have no effect, are undocumented, too late,
/// or go to a crawler that does not read them; and names that are no crawler's.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    for rule in &site.policy.indexing {
        words::lint(rule, diagnostics);
        unknown_names(rule, registry, diagnostics);
        for (scope, said) in rule.tags.iter() {
            each_scope(rule, scope, said, site.at, diagnostics);
        }
    }
}

/// Reports names under `tags` that are no crawler's: `robots`, and those that are written nearly
/// like a directive or a crawler. Any other unknown name may be a crawler that crawlgate does not
/// know.
fn unknown_names(rule: &IndexingRule, registry: &Registry, diagnostics: &mut Diagnostics) {
    for (scope, _) in rule.tags.iter() {
        let Scope::Bot(name) = scope else { continue };
        let place = rule
            .texts_for(scope)
            .next()
            .map_or(rule.span, |text| text.span);
        if name.eq_ignore_ascii_case("robots") {
            lints::UNKNOWN_TOKEN.report(
                diagnostics,
                place,
                "no crawler is called `robots`, so none follows this",
                "in a meta tag that means every crawler: write `\"*\"` here, or `tag` for `tags`",
            );
            continue;
        }
        let directives = Flag::ALL
            .iter()
            .map(|flag| flag.name())
            .filter(|_| !is_bots_name(name));
        let help = match (nearest(name, directives), agents::nearly(name, registry)) {
            (Some(near), _) => format!(
                "did you mean the directive `{near}`? What everybody is told stands in `tag`"
            ),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => continue,
        };
        lints::UNKNOWN_TOKEN.report(
            diagnostics,
            place,
            format!("no known crawler is called `{name}`"),
            help,
        );
    }
}

/// Reports the directives of a rule for one scope, each at the text that has it, and a scope whose
/// crawler reads meta tags or robots.txt only.
fn each_scope(
    rule: &IndexingRule,
    scope: &Scope,
    said: &Directives,
    now: Timestamp,
    diagnostics: &mut Diagnostics,
) {
    let texts: Vec<_> = rule.texts_for(scope).collect();
    for directive in said.iter() {
        let text = texts.iter().find(|text| {
            Directives::parse(text)
                .is_ok_and(|parsed| parsed.iter().any(|known| known.name() == directive.name()))
        });
        let place = text.map_or(rule.span, |text| text.span);
        each_directive(directive, place, now, diagnostics);
    }
    if let Scope::Bot(name) = scope
        && let Some(bot) = engines::bot(name)
        && let Some(text) = texts.first()
    {
        let (only, help) = match bot.reads {
            Reads::Meta => ("meta tags in HTML", "the page itself has to say it"),
            Reads::RobotsTxt => ("robots.txt", "write a group for it under `robots`"),
        };
        lints::HEADER_UNREAD.report(
            diagnostics,
            text.span,
            format!(
                "of `{name}` {} documents {only} only, not this header",
                bot.operator
            ),
            format!("{help} ({}, {})", bot.source, bot.as_of),
        );
    }
}

/// Reports a directive that no search engine documents, and an `unavailable_after` that has passed.
fn each_directive(
    directive: &Directive,
    place: Span,
    now: Timestamp,
    diagnostics: &mut Diagnostics,
) {
    match directive {
        Directive::Custom(word) => lints::CUSTOM_DIRECTIVE.report(
            diagnostics,
            place,
            format!("`{word}` is sent as it is; no search engine documents it"),
            "a crawler that does not know it passes over it",
        ),
        Directive::UnavailableAfter(moment) if *moment <= now => lints::UNAVAILABLE_AFTER_PAST
            .report(
                diagnostics,
                place,
                format!("{moment} has passed: these pages are not to be found any more"),
                "write noindex, which every search engine knows, or a later date",
            ),
        _ => {}
    }
}
