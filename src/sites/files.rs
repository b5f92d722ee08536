//! Policy files: which there are, and what stands in them.

use crate::yaml::Source;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A policy is written by hand; more is a mistake.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// What a site's file holds: its text, or why there is none.
pub type Found = Result<Source, String>;

/// The policies of a directory by site name. A file that cannot be read is found all the same, so that its site stays.
///
/// # Errors
/// The directory cannot be read.
pub fn policies(directory: &Path) -> std::io::Result<BTreeMap<String, Found>> {
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    // An entry that cannot be read might be a site: better no answer than one that lacks it.
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        let is_policy = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        let Some(stem) =
            path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_policy && !stem.starts_with('.'))
        else {
            continue;
        };
        // Kubernetes mounts a ConfigMap as links; what they lead to counts.
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => continue,
            _ => {}
        }
        let read = if found.contains_key(stem) {
            Err(format!("{}: another file is called `{stem}` too; a site's name is its file's name", path.display()))
        } else {
            read(&path)
        };
        found.insert(stem.to_owned(), read);
    }
    Ok(found)
}

/// Reads one file.
pub fn read(path: &Path) -> Found {
    let name = path.display();
    // Opening a pipe waits until somebody writes into it.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(format!("{name}: is no file"));
    }
    let file = fs::File::open(path).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("{name}: is larger than 4 MiB, which is no policy"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("{name}: is not UTF-8 (byte {})", error.utf8_error().valid_up_to()))?;
    Ok(Source { name: name.to_string().into(), text: text.into() })
}
