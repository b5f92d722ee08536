//! [`answers`] decodes the policy section `answers`: the site's own HTML pages for pauses, failures
//! and refusals. [`included`] reads the name of a file beside the policy. It refuses a path, which
//! could lead anywhere on the machine.

use crate::policy::model::{AnswerPages, Included};
use crate::yaml::{Decoder, Fields, Node};

pub fn answers(fields: &mut Fields<'_>) -> AnswerPages {
    AnswerPages {
        pause: fields.get("pause", page),
        failure: fields.get("failure", page),
        refusal: fields.get("refusal", page),
    }
}

fn page(decoder: &mut Decoder, node: &Node) -> Option<Included> {
    included(decoder, node, "html")
}

/// The name of a file beside the policy. A path could lead anywhere on the machine, and is refused.
pub fn included(decoder: &mut Decoder, node: &Node, ending: &str) -> Option<Included> {
    let name = decoder.located(node, "the name of a file beside the policy")?;
    let stem = name
        .value
        .strip_suffix(ending)
        .and_then(|stem| stem.strip_suffix('.'));
    if stem.is_some_and(|stem| {
        !stem.is_empty() && !stem.starts_with('.') && !stem.contains(['/', '\\', '\0'])
    }) {
        return Some(Included { name, bytes: None });
    }
    decoder.error_with_help(
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
