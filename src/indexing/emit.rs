//! Tags as field lines.

use super::field::names_scope;
use super::{Directive, Scope, Tags};

impl Tags {
    /// Field values, one per line to send: unscoped first, one line per scope, `unavailable_after` on its own line in
    /// ISO 8601 (it has no comma), never folded.
    ///
    /// What follows a bot's name first is a directive by which the name is known to be one, `all` if there is no other:
    /// `other: somethingnew, max-snippet: 3` would be read as an unknown key, and the limit as everybody's.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (scope, directives) in self.iter() {
            let prefix = match scope {
                Scope::All => String::new(),
                Scope::Bot(name) => format!("{name}: "),
            };
            let (dated, plain): (Vec<&Directive>, Vec<&Directive>) =
                directives.iter().partition(|directive| matches!(directive, Directive::UnavailableAfter(_)));
            let groups =
                (!plain.is_empty()).then_some(plain).into_iter().chain(dated.into_iter().map(|dated| vec![dated]));
            for group in groups {
                let mut words: Vec<String> = group.iter().map(|directive| directive.to_string()).collect();
                if let Scope::Bot(name) = scope {
                    match words.iter().position(|word| names_scope(name, word)) {
                        Some(place) => words[..=place].rotate_right(1),
                        None => words.insert(0, Directive::All.to_string()),
                    }
                }
                lines.push(format!("{prefix}{}", words.join(", ")));
            }
        }
        lines
    }
}
