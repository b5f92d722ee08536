//! [`likely_type`] guesses the content type of a response from the extension of its path, where the
//! response is not known.

use super::{extension, path_of};

/// Extensions and types. A path with another extension, or without one, is a page.
const TYPES: [(&str, &str); 56] = [
    ("7z", "application/x-7z-compressed"),
    ("aac", "audio/aac"),
    ("atom", "application/atom+xml"),
    ("avi", "video/x-msvideo"),
    ("avif", "image/avif"),
    ("bin", "application/octet-stream"),
    ("bmp", "image/bmp"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("epub", "application/epub+zip"),
    ("exe", "application/octet-stream"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jxl", "image/jxl"),
    ("m4a", "audio/mp4"),
    ("m4v", "video/x-m4v"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mkv", "video/x-matroska"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("mpeg", "video/mpeg"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("ogg", "audio/ogg"),
    ("ogv", "video/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("rar", "application/vnd.rar"),
    ("rss", "application/rss+xml"),
    ("rtf", "application/rtf"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xls", "application/vnd.ms-excel"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("xml", "text/xml"),
    ("zip", "application/zip"),
];
const PAGE: &str = "text/html";

/// The likely content type of the response to a request for this target, by the extension of its
/// last path segment. `text/html` if that has none, or one that is not known.
pub fn likely_type(target: &[u8]) -> &'static str {
    let extension = extension(path_of(target)).unwrap_or_default();
    let extension = String::from_utf8_lossy(extension).to_ascii_lowercase();
    match TYPES.binary_search_by_key(&extension.as_str(), |(extension, _)| extension) {
        Ok(place) => TYPES[place].1,
        Err(_) => PAGE,
    }
}

/// A file extension of this type, and its type. `image/*` stands for any image. `None` if no known
/// extension has the type.
pub fn example_of(kind: &str) -> Option<(&'static str, &'static str)> {
    TYPES
        .into_iter()
        .rfind(|(_, media)| match kind.strip_suffix('*') {
            Some(start) => media.starts_with(start),
            None => *media == kind,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_in_order_and_found() {
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
            assert_eq!(likely_type(target.as_bytes()), media, "{target}");
        }
    }
}
