//! The lint of unknown keys (words before the colon) in the origin's robots.txt. crawlgate does not
//! publish the lines with such keys, so the lint reports them.

use super::catalogue as lints;
use crate::policy::compile::lines_with_unknown_keys;
use crate::policy::site::Site;
use crate::robots::KeySpelling;
use crate::yaml::{Diagnostics, Severity};
use std::collections::HashSet;

/// Reports each unknown key of the origin's file. A key that Google's library takes for another
/// (`Disallowed`) is a warning.
pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    let Some(origin) = site.origin.as_ref().filter(|_| site.policy.reads_origin()) else {
        return;
    };
    let mut found = Diagnostics::default();
    let mut seen = HashSet::new();
    for line in lines_with_unknown_keys(&origin.file, &site.policy.robots.origin_keys) {
        let Some(record) = &line.key_value else {
            continue;
        };
        let name = origin.file.text(&record.name);
        if seen.insert(name.to_ascii_lowercase()) {
            let place = origin.line_location(line.number);
            let message = format!(
                "\"{name}\" is not a key of robots.txt: its lines are not published ({place})"
            );
            let (lint, help) = if record.spelling == KeySpelling::Longer {
                let help =
                    "only Google's library reads these lines in the origin's file; correct the \
                     key there"
                        .to_owned();
                (
                    lints::ORIGIN_KEY_LEFT_OUT.with_severity(Severity::Warning),
                    help,
                )
            } else {
                let help = format!(
                    "if crawlers need these lines, name the key in the policy: \"origin_keys: \
                     [{name}]\""
                );
                (lints::ORIGIN_KEY_LEFT_OUT, help)
            };
            lint.report(&mut found, None, message, help);
        }
    }
    super::add_limited(found, diagnostics);
}
