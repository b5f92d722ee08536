//! Reads the files that a command names: [`read_source`] reads one as text, and [`is_robots_txt`]
//! tells a robots.txt from a policy.

use super::Result;
use crate::files::read_bounded;
use crate::policy::lint::FileFindings;
use crate::robots::{RobotsFile, RobotsKey};
use crate::sites::policy_directory::{self, PolicyText, UnreadableReason};
use crate::yaml::{Diagnostics, SourceFile, strip_http_scheme};
use std::path::Path;

/// Reads a file as text. Fails if it cannot be read; a file that is too large or not UTF-8 gives a
/// finding.
pub fn read_source(path: &Path) -> Result<FileFindings> {
    source_or_finding(policy_directory::read_text_file(path))
}

/// Replaces a file that is too large, not UTF-8 or outside of the directory by an empty text and a
/// finding. Fails for a file that cannot be read.
pub fn source_or_finding(read: PolicyText) -> Result<FileFindings> {
    let mut diagnostics = Diagnostics::default();
    let source = match read {
        Ok(source) => source,
        Err(unreadable) => {
            if let UnreadableReason::Io(_) | UnreadableReason::NotAFile = unreadable.why {
                return Err(unreadable.into());
            }
            diagnostics.push(unreadable.diagnostic());
            SourceFile {
                name: unreadable.path.into(),
                text: "".into(),
            }
        }
    };
    Ok(FileFindings {
        source,
        diagnostics,
    })
}

/// Whether a path is a robots.txt and not a policy: `-`, an http(s) URL, or a file. The file has the
/// extension `txt`, or not that of a policy and a known key in its first line with a key.
pub fn is_robots_txt(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let extension = path.extension().unwrap_or_default();
    let is_file = match extension.to_ascii_lowercase().as_encoded_bytes() {
        b"txt" => !path.is_dir(),
        b"yaml" | b"yml" => false,
        _ => {
            let file = RobotsFile::parse(read_bounded(path).unwrap_or_default());
            let mut keys = file.lines().iter().flat_map(|line| &line.key_value);
            keys.next()
                .is_some_and(|first| first.key != RobotsKey::Unknown)
        }
    };
    text == "-" || strip_http_scheme(&text).is_some() || is_file
}
