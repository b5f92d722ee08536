//! [`likely_content_type`] guesses the content type of a response from the file extension of its
//! path.

use super::{file_extension, path_of};
use std::sync::LazyLock;

/// Extensions with their types, sorted. A path with another extension, or without one, is a page.
static TYPES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let lines = include_str!("types.txt").lines();
    lines.filter_map(|line| line.split_once(' ')).collect()
});
const PAGE: &str = "text/html";

/// The likely content type of the response to a request for this target; `text/html` without a
/// known extension.
pub fn likely_content_type(target: &[u8]) -> &'static str {
    let extension = file_extension(path_of(target)).unwrap_or_default();
    let extension = String::from_utf8_lossy(extension).to_ascii_lowercase();
    match TYPES.binary_search_by_key(&extension.as_str(), |(extension, _)| extension) {
        Ok(index) => TYPES[index].1,
        Err(_) => PAGE,
    }
}

/// A file extension of this type, and its type. `kind` may be a range such as `image/*`. `None` if
/// no known extension has the type.
pub fn example_extension(kind: &str) -> Option<(&'static str, &'static str)> {
    TYPES
        .iter()
        .copied()
        .rfind(|(_, media)| match kind.strip_suffix('*') {
            Some(start) => media.starts_with(start),
            None => *media == kind,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_sorted_and_found() {
        assert_eq!(TYPES.len(), include_str!("types.txt").lines().count());
        assert!(TYPES.is_sorted_by_key(|(extension, _)| extension));
        for (target, media) in [
            ("/", PAGE),
            ("/report.pdf?download=1", "application/pdf"),
            ("/a.b/Photo.JPG", "image/jpeg"),
            ("/a.pdf/", PAGE),
            ("/index.php", PAGE),
            ("/file.", PAGE),
            ("/?x=a.pdf", PAGE),
        ] {
            assert_eq!(likely_content_type(target.as_bytes()), media, "{target}");
        }
    }
}
