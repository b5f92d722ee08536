//! Tags as field lines.

use super::{Directive, Scope, Tags};

impl Tags {
    /// Field values, one per line to send: unscoped first, one line per scope, `unavailable_after` on its own line in
    /// ISO 8601 (it has no comma), never folded.
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
                let words: Vec<String> = group.iter().map(|directive| directive.to_string()).collect();
                lines.push(format!("{prefix}{}", words.join(", ")));
            }
        }
        lines
    }
}
