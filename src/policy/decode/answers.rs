//! [`answers`] decodes the policy section `answers`: the file names of the site's own HTML pages
//! for pauses, failures and refusals. [`included_file`] decodes the name of a file in the policy
//! directory. It rejects a path, because a path could lead anywhere on the machine.

use crate::policy::model::{AnswerPages, IncludedFile};
use crate::yaml::{MapFields, NodeReader};

/// Decodes the section. The files are read later ([`IncludedFiles`](crate::policy::IncludedFiles)).
pub fn answers(fields: &mut MapFields<'_>) -> AnswerPages {
    AnswerPages {
        pause: fields.get("pause", html_page),
        failure: fields.get("failure", html_page),
        refusal: fields.get("refusal", html_page),
    }
}

fn html_page(node: NodeReader<'_>) -> Option<IncludedFile> {
    included_file(node, "html")
}

/// Decodes the name of a file with this extension beside the policy. `None` with an error for a
/// path, a name that begins with a dot, or another extension.
pub fn included_file(node: NodeReader<'_>, ending: &str) -> Option<IncludedFile> {
    let name = node.located("the name of a file in the policy directory")?;
    let stem = name
        .strip_suffix(ending)
        .and_then(|stem| stem.strip_suffix('.'));
    if stem.is_some_and(|stem| {
        !stem.is_empty() && !stem.starts_with('.') && !stem.contains(['/', '\\', '\0'])
    }) {
        return Some(IncludedFile { name, bytes: None });
    }
    node.decoder.error_with_help(
        "bad-file-name",
        name.span,
        format!(
            "\"{}\" is not the name of a .{ending} file in the policy directory",
            name.value
        ),
        format!(
            "put the file into the policy directory and write its name without a path: \
             \"page.{ending}\""
        ),
    );
    None
}
