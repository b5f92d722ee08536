//! [`read`] makes a checked [`Policy`] of the text of a policy file.

use super::decode;
use super::model::Policy;
use crate::yaml::{Diagnostic, Diagnostics, Source};

/// Reads and checks one policy file. One run reports all of its mistakes. There is a policy only when no error was
/// found; warnings leave it usable.
///
/// ```
/// use crawlgate::{internals::policy, yaml::Source};
/// let source = Source { name: "shop.yaml".into(), text: "robots: { origin: replace }\nhots: [shop.example]\n".into() };
/// let (policy, findings) = policy::read("shop", &source);
/// assert!(policy.is_none());
/// assert_eq!(findings.items[0].help.as_deref(), Some("did you mean `hosts`?"));
/// ```
pub fn read(name: &str, source: &Source) -> (Option<Policy>, Diagnostics) {
    crate::yaml::read(source, |decoder, root| match root {
        Some(root) => decode::policy(name, source, decoder, root),
        None => {
            let help = "the least there is: `robots: { groups: [{ agents: \"*\", disallow: /private/ }] }`";
            decoder.diagnostics.push(Diagnostic::whole_file("empty-policy", "the policy is empty").help(help));
            None
        }
    })
}
