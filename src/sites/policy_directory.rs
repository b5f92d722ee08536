//! Reads the directory with the policy files, for the server, and for commands that work without
//! it. [`list_policies`] lists the files, [`read_policies`] reads them, and [`read_included_files`]
//! reads other files that policies may name. [`PolicyText`] is the text of a policy file, or the
//! reason why it has none ([`UnreadableFile`]).

use crate::files::{absolute_path, parent_directory, read_file_up_to};
use crate::policy::included::{self, IncludedFiles};
use crate::printable::printable_path;
use crate::yaml::{DEFAULTS, Diagnostic, SourceFile};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use UnreadableReason::*;

/// A policy is written by hand; a larger file is a mistake.
const MAX_POLICY_BYTES: u64 = 4 * 1024 * 1024;

/// More files beside the policies are not read: they all stay in memory.
const MAX_INCLUDED: usize = 256;

/// The text of a policy file, or why there is none.
pub type PolicyText = Result<SourceFile, UnreadableFile>;

/// Why a policy file has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct UnreadableFile {
    /// The file.
    pub path: String,
    /// What is wrong.
    pub why: UnreadableReason,
}

/// The path of a policy file, also of one that cannot be read.
pub fn policy_path(text: &PolicyText) -> String {
    match text {
        Ok(source) => source.name.to_string(),
        Err(unreadable) => unreadable.path.clone(),
    }
}

/// Whether this is a policy file that was removed.
pub fn is_removed(text: &PolicyText) -> bool {
    matches!(
        text,
        Err(UnreadableFile {
            why: Removed(_),
            ..
        })
    )
}

/// What is wrong with a file that has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableReason {
    /// It is a pipe, a socket or a device.
    #[error("is not a file")]
    NotAFile,
    /// The operating system refuses.
    #[error("cannot be read: {0}")]
    Io(String),
    /// It is a link that leads out of its directory.
    #[error(
        "is a link to a file outside of its directory, so it is not read; name that file instead"
    )]
    LinkOutside,
    /// It is larger than any policy.
    #[error("the file is larger than 4 MiB")]
    TooLarge,
    /// It is in another encoding.
    #[error("the file is not UTF-8 (byte {0})")]
    NotUtf8(usize),
    /// Another file has the same name with another ending.
    #[error("{0} has the same site name")]
    DuplicateSite(String),
    /// It was removed: the name of its site.
    #[error(
        "the file is gone; crawlgate keeps its last good policy. Put the file back, or give its hosts to another \
         file. To end the site, run \"crawlgate reload --remove {0}\" (in an application: remove_site)"
    )]
    Removed(String),
}

impl UnreadableFile {
    /// The finding about the whole file.
    pub fn diagnostic(&self) -> Diagnostic {
        let id = match &self.why {
            NotAFile | Io(_) => "unreadable",
            LinkOutside => "leads-out",
            TooLarge => "too-large",
            NotUtf8(_) => "not-utf8",
            Removed(_) => "removed",
            DuplicateSite(other) => return duplicate_site_finding(other),
        };
        Diagnostic::whole_file(id, self.why.to_string())
    }
}

/// The finding for a file whose site name another file has already.
pub fn duplicate_site_finding(other_file: &str) -> Diagnostic {
    let reason = DuplicateSite(other_file.to_owned());
    Diagnostic::whole_file("duplicate-site", reason.to_string())
        .help("the site name is the file name: rename one of them")
}

/// The command that shows all findings about a policy file. It works in any directory.
pub fn check_command(file: &str) -> String {
    let directory = absolute_path(parent_directory(Path::new(file)));
    format!("crawlgate check {}", directory.display())
}

/// The policy files directly inside a directory, in the order of their names: `*.yaml` and `*.yml`
/// without the defaults, hidden files, directories, and names that are not UTF-8.
///
/// # Errors
/// The directory cannot be read as a whole: an entry that cannot be read might be a policy.
pub fn list_policies(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_policy = path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml");
        let is_named = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .is_some_and(|stem| !stem.starts_with('.'));
        // Kubernetes mounts a ConfigMap as links, so the target of a link counts.
        if is_policy && is_named && !path.ends_with(DEFAULTS) && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The policies of a directory by site name. A file that cannot be read is an error in the map, so
/// that its site stays. Two files with the same site name are one error.
///
/// # Errors
/// As for [`list_policies`].
pub fn read_policies(directory: &Path) -> io::Result<BTreeMap<String, PolicyText>> {
    let mut found: BTreeMap<String, PolicyText> = BTreeMap::new();
    for path in list_policies(directory)? {
        let site = site_name(&path);
        let text = match found.get(&site) {
            Some(other) => Err(UnreadableFile {
                path: printable_path(&path),
                why: DuplicateSite(policy_path(other)),
            }),
            None => read_policy(&path),
        };
        found.insert(site, text);
    }
    Ok(found)
}

/// The files of a directory that its policies may name: not hidden, with one of the endings for such
/// files, at most 256. A file that cannot be read or is too large is left out, and the policy that
/// names it has an error. Empty if the directory cannot be read.
pub fn read_included_files(directory: &Path) -> IncludedFiles {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let path = entry.path();
        let name = path.file_name()?.to_str()?.to_owned();
        let ending = path.extension()?.to_str()?;
        // As for policies, the target of a link counts. Reading a pipe would wait.
        let can_be_named = included::EXTENSIONS.contains(&ending) && !name.starts_with('.');
        (can_be_named && path.is_file()).then_some((name, path))
    });
    let mut files = IncludedFiles::default();
    for (name, path) in named.take(MAX_INCLUDED) {
        if let Ok(bytes) = read_file_up_to(&path, included::MAX_BYTES) {
            files.0.insert(name, bytes.into());
        }
    }
    files
}

/// The name of a policy file's site: the file name without its ending.
pub fn site_name(path: &Path) -> String {
    printable_path(Path::new(path.file_stem().unwrap_or_default()))
}

/// Whether a path is a link to a file outside of its directory. Such a link in a proposed policy
/// could print another file of the machine. False if the path cannot be resolved.
pub fn is_link_outside(path: &Path) -> bool {
    // Kubernetes mounts a ConfigMap as links within the directory.
    match (parent_directory(path).canonicalize(), path.canonicalize()) {
        (Ok(directory), Ok(file)) => !file.starts_with(directory),
        _ => false,
    }
}

/// Reads one policy file, and the defaults of its directory after it. Follows a link to the policy
/// wherever it leads, but no link to defaults outside; see `is_link_outside`.
///
/// # Errors
/// As for [`read_text_file`], for each of them.
pub fn read_policy(path: &Path) -> PolicyText {
    let mut policy = read_text_file(path)?;
    let defaults = path.with_file_name(DEFAULTS);
    if path == defaults || fs::symlink_metadata(&defaults).is_err() {
        return Ok(policy);
    }
    let unreadable = |why: String| UnreadableFile {
        path: printable_path(path),
        why: Io(why),
    };
    if is_link_outside(&defaults) {
        let why = LinkOutside;
        return Err(unreadable(format!("{DEFAULTS} {why}")));
    }
    let defaults = read_text_file(&defaults).map_err(|error| unreadable(error.to_string()))?;
    policy.append_defaults(&defaults.name, &defaults.text);
    Ok(policy)
}

/// Reads one file as text, such as the settings, which have no defaults.
///
/// # Errors
/// It is no regular file, cannot be read, is larger than 4 MiB, or is not UTF-8. See [`UnreadableReason`].
pub fn read_text_file(path: &Path) -> PolicyText {
    let unreadable = |why| UnreadableFile {
        path: printable_path(path),
        why,
    };
    // Opening a pipe waits until another process writes into it.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(unreadable(NotAFile));
    }
    let bytes = read_file_up_to(path, MAX_POLICY_BYTES).map_err(|error| {
        unreadable(match error.kind() {
            ErrorKind::FileTooLarge => TooLarge,
            _ => Io(error.to_string()),
        })
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|error| unreadable(NotUtf8(error.utf8_error().valid_up_to())))?;
    Ok(SourceFile {
        name: printable_path(path).into(),
        text: text.into(),
    })
}
