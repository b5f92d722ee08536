//! Lints of X-Robots-Tag directives in the policy section `indexing`. They report directives that
//! no crawler documents or that a search engine ignores, dates that have passed, crawlers that do not
//! read the header, and unknown names of crawlers.

use super::{agents, catalogue as lints};
use crate::crawlers::Registry;
use crate::indexing::documented_bots::{self, DirectiveSource};
use crate::indexing::{Directive, Directives, Flag, TagScope, is_bot_name};
use crate::policy::model::IndexingRule;
use crate::policy::site::Site;
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, SourceSpan, nearest_word};
use Flag::*;
use TagScope::*;

/// Checks each rule of `indexing`.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    for rule in &site.policy.indexing {
        lint_unknown_names(rule, registry, diagnostics);
        for (scope, directives) in rule.tags.iter() {
            lint_scope(rule, scope, directives, site.at, diagnostics);
        }
    }
}

/// Reports names under `tags` that are no crawlers: `robots`, and misspelt names. Any other unknown
/// name may be a crawler that crawlgate does not know.
fn lint_unknown_names(rule: &IndexingRule, registry: &Registry, diagnostics: &mut Diagnostics) {
    for (scope, _) in rule.tags.iter() {
        let Bot(name) = scope else { continue };
        let place = rule
            .texts_for(scope)
            .next()
            .map_or(rule.span, |text| text.span);
        if name.eq_ignore_ascii_case("robots") {
            lints::UNKNOWN_TOKEN.report(
                diagnostics,
                place,
                "no crawler is called \"robots\", so no crawler reads this",
                "in a meta tag \"robots\" means all crawlers: here write \"*\", or use \"tag\" in \
                 place of \"tags\"",
            );
            continue;
        }
        let directives = Flag::ALL
            .iter()
            .map(|flag| flag.name())
            .filter(|_| !is_bot_name(name));
        let help = match (
            nearest_word(name, directives),
            agents::nearest_token(name, registry),
        ) {
            (Some(near), _) => format!(
                "did you mean the directive \"{near}\"? A directive for all crawlers goes under \
                 \"tag\""
            ),
            (None, Some(near)) => format!("did you mean \"{near}\"?"),
            (None, None) => continue,
        };
        lints::UNKNOWN_TOKEN.report(
            diagnostics,
            place,
            format!("no known crawler is called \"{name}\""),
            help,
        );
    }
}

/// Checks the directives of a rule for one scope, and reports a crawler that reads only meta tags
/// or robots.txt.
fn lint_scope(
    rule: &IndexingRule,
    scope: &TagScope,
    directives: &Directives,
    now: Timestamp,
    diagnostics: &mut Diagnostics,
) {
    let texts: Vec<_> = rule.texts_for(scope).collect();
    for directive in directives.iter() {
        let text = texts.iter().find(|text| {
            Directives::parse(text)
                .is_ok_and(|parsed| parsed.iter().any(|known| known.name() == directive.name()))
        });
        lint_directive(
            directive,
            scope,
            text.map_or(rule.span, |text| text.span),
            now,
            diagnostics,
        );
    }
    if let Bot(name) = scope
        && let Some(bot) = documented_bots::find_bot(name)
        && let Some(text) = texts.first()
    {
        let (only, help) = match bot.directive_source {
            DirectiveSource::Meta => ("meta tags in HTML", "put it into the page itself"),
            DirectiveSource::RobotsTxt => (
                "robots.txt",
                "write a group for this crawler under \"robots\"",
            ),
        };
        lints::HEADER_UNREAD.report(
            diagnostics,
            text.span,
            format!(
                "{} documents only {only} for \"{name}\", not this header",
                bot.operator
            ),
            format!("{help} ({}, {})", bot.source_url, bot.as_of),
        );
    }
}

/// Reports a directive that no search engine documents or that the crawlers of `scope` ignore, and
/// an `unavailable_after` that has passed.
fn lint_directive(
    directive: &Directive,
    scope: &TagScope,
    place: SourceSpan,
    now: Timestamp,
    diagnostics: &mut Diagnostics,
) {
    match directive {
        Directive::Custom(word) => lints::CUSTOM_DIRECTIVE.report(
            diagnostics,
            place,
            format!("\"{word}\" is sent as written; no search engine documents it"),
            "check the spelling: crawlers ignore directives that they do not know",
        ),
        Directive::UnavailableAfter(moment) if *moment <= now => lints::UNAVAILABLE_AFTER_PAST
            .report(
                diagnostics,
                place,
                format!("{moment} has passed: Google drops these pages"),
                "write noindex, which all search engines know, or a later date",
            ),
        _ => {
            if let Some(reason) = ignored_reason(directive, scope) {
                let text = format!("\"{}\" is ignored: {reason}", directive.name());
                lints::DIRECTIVE_IGNORED.report(diagnostics, place, text, "remove it");
            }
        }
    }
}

/// Why the crawlers of `scope` ignore a directive. `None` if one of them may use it.
fn ignored_reason(directive: &Directive, scope: &TagScope) -> Option<&'static str> {
    let bot: &str = match scope {
        All => "*",
        Bot(name) => name,
    };
    match (directive, bot) {
        (Directive::Flag(NoOdp | NoYdir), _) => Some("the directory that it is about is closed"),
        (Directive::Flag(NoSitelinksSearchbox), _) => {
            Some("Google shows no search box among results any more")
        }
        (Directive::Flag(NoArchive | NoCache), "googlebot") => {
            Some("Google does not use it any more")
        }
        (Directive::UnavailableAfter(_), "bingbot") => Some("Bing does not document it"),
        _ => None,
    }
}
