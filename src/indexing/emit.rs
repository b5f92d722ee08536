//! [`Tags::lines`] writes tags as lines of X-Robots-Tag.

use super::field::{begins_scope, names_scope};
use super::{Directive, Scope, Tags};

impl Tags {
    /// Field values, one per line to send: unscoped first, one line per scope, never folded. Two kinds of directives
    /// have a line of their own. `unavailable_after` has one (in ISO 8601, which has no comma), so that no reader takes
    /// what follows for a part of the date. An unknown directive has one if it would be read as for another bot, were
    /// it not the first of its line.
    ///
    /// The first directive behind a bot's name must be one by which the name is known to be a bot's, `all` if there is
    /// no other: `other: somethingnew, max-snippet: 3` would be read as an unknown key, and the limit as one for every
    /// bot.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (scope, directives) in self.iter() {
            let said = directives.iter().map(|directive| (stands_apart(directive), directive.to_string()));
            let (apart, together): (Vec<_>, Vec<_>) = said.partition(|(apart, _)| *apart);
            let groups = std::iter::once(together).chain(apart.into_iter().map(|word| vec![word]));
            for group in groups.filter(|group| !group.is_empty()) {
                let words = group.into_iter().map(|(_, word)| word).collect();
                lines.push(line(scope, words));
            }
        }
        lines
    }
}

fn stands_apart(directive: &Directive) -> bool {
    match directive {
        Directive::UnavailableAfter(_) => true,
        Directive::Unknown(key, _) => &**key == "unavailable_after" || begins_scope(&directive.to_string()),
        _ => false,
    }
}

fn line(scope: &Scope, mut words: Vec<String>) -> String {
    let Scope::Bot(name) = scope else { return words.join(", ") };
    match words.iter().position(|word| names_scope(name, word)) {
        Some(place) => words[..=place].rotate_right(1),
        None => words.insert(0, Directive::All.to_string()),
    }
    format!("{name}: {}", words.join(", "))
}
