//! [`answers`] decodes the policy section `answers`: the site's own HTML pages for pauses, failures
//! and refusals. [`included`] reads the name of a file beside the policy. It refuses a path, which
//! could lead anywhere on the machine.

use crate::policy::model::{AnswerPages, Included};
use crate::yaml::{Fields, Reader};

/// Decodes `pause`, `failure` and `refusal`, each the name of an HTML file beside the policy. An
/// absent field is `None`; the files are read later (`IncludedFiles`).
pub fn answers(fields: &mut Fields<'_>) -> AnswerPages {
    AnswerPages {
        pause: fields.get("pause", page),
        failure: fields.get("failure", page),
        refusal: fields.get("refusal", page),
    }
}

fn page(node: Reader<'_>) -> Option<Included> {
    included(node, "html")
}

/// Decodes the name of a file beside the policy; `ending` is its ending without the dot. The
/// contents (`bytes`) are filled in later. `None` with an error for a path, which could lead
/// anywhere on the machine, a name that begins with a dot, or another ending.
pub fn included(node: Reader<'_>, ending: &str) -> Option<Included> {
    let name = node.located("the name of a file beside the policy")?;
    let stem = name
        .value
        .strip_suffix(ending)
        .and_then(|stem| stem.strip_suffix('.'));
    if stem.is_some_and(|stem| {
        !stem.is_empty() && !stem.starts_with('.') && !stem.contains(['/', '\\', '\0'])
    }) {
        return Some(Included { name, bytes: None });
    }
    node.decoder.error_with_help(
        "bad-file-name",
        name.span,
        format!(
            "`{}` is not the name of a .{ending} file beside the policy",
            name.value
        ),
        format!("put the file into the policy directory and write its name alone: `page.{ending}`"),
    );
    None
}
