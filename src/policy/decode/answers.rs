//! `answers`: pages of the site's own; and names of files beside the policy.

use crate::policy::model::{AnswerPages, Included};
use crate::yaml::{Decoder, Node};

pub fn answers(node: &Node, decoder: &mut Decoder<'_>) -> AnswerPages {
    let Some(mut fields) = decoder.fields(node, "a map: pause, failure, refusal") else {
        return AnswerPages::default();
    };
    let mut page = |name| fields.take(name).and_then(|node| included(node, "html", decoder));
    let pages = AnswerPages { pause: page("pause"), failure: page("failure"), refusal: page("refusal") };
    fields.finish(decoder);
    pages
}

/// The name of a file beside the policy. A path could lead anywhere on the machine, and is refused.
pub fn included(node: &Node, ending: &str, decoder: &mut Decoder<'_>) -> Option<Included> {
    let name = decoder.located(node, "the name of a file beside the policy")?;
    let stem = name.value.strip_suffix(ending).and_then(|stem| stem.strip_suffix('.'));
    if stem.is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.') && !stem.contains(['/', '\\', '\0'])) {
        return Some(Included::named(name));
    }
    let message = format!("`{}` is not the name of a .{ending} file beside the policy", name.value);
    decoder.error("bad-file-name", name.span, message).help =
        Some(format!("put the file into the policy directory and write its name alone: `page.{ending}`"));
    None
}
