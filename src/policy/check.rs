//! Text into a checked policy: the file read as a tree, its sections decoded, then what only the whole file shows.

use super::decode;
use super::model::Policy;
use crate::yaml::{Decoder, Diagnostic, Diagnostics, Document, Source};

/// Reads and checks one policy file, complaining about everything that is wrong with it in one run. There is a policy
/// only when no error was found; warnings leave it usable.
///
/// ```
/// use crawlgate::{policy, yaml::Source};
/// let source = Source { name: "shop.yaml".into(), text: "robots: { origin: replace }\nhots: [shop.example]\n".into() };
/// let (policy, findings) = policy::read("shop", &source);
/// assert!(policy.is_none());
/// assert_eq!(findings.items[0].help.as_deref(), Some("did you mean `hosts`?"));
/// ```
pub fn read(name: &str, source: &Source) -> (Option<Policy>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let policy = Document::parse(source, &mut diagnostics).and_then(|document| {
        let Some(root) = document.root else {
            diagnostics.push(
                Diagnostic::whole_file("empty-policy", "the policy is empty")
                    .help("the least there is: `robots: { groups: [{ agents: \"*\", disallow: /private/ }] }`"),
            );
            return None;
        };
        decode::policy(name, source, &root, &mut Decoder { diagnostics: &mut diagnostics })
    });
    diagnostics.sort();
    let usable = !diagnostics.has_errors();
    (policy.filter(|_| usable), diagnostics)
}
