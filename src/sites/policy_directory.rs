//! Reads the policy directory, for the server and the offline commands. [`policy_files`] lists the
//! policy files, [`policies`] reads them, and [`included_files`] reads the files that policies may
//! name. [`PolicyText`] is the text of a policy file, or the reason why it has none
//! ([`Unreadable`]).

use crate::files::{directory_of, read_file};
use crate::policy::included::{self, IncludedFiles};
use crate::printable::printable_path;
use crate::yaml::{Diagnostic, Source};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A policy is written by hand; a larger file is a mistake.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// More files beside the policies are not read: they all stay in memory.
const MAX_INCLUDED: usize = 256;

/// The text of a policy file, or why there is none.
pub type PolicyText = Result<Source, Unreadable>;

/// Why a policy file has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct Unreadable {
    /// The file.
    pub path: String,
    /// What is wrong.
    pub why: Unread,
}

/// Whether a text stands for a file that was there before and is gone.
pub fn is_removed(text: &PolicyText) -> bool {
    matches!(
        text,
        Err(Unreadable {
            why: Unread::Removed(_),
            ..
        })
    )
}

/// What is wrong with a file that has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It is a pipe, a socket or a device.
    #[error("is not a file")]
    NotAFile,
    /// The operating system refuses.
    #[error("cannot be read: {0}")]
    Io(String),
    /// It is a link that leads out of its directory.
    #[error(
        "is a link to a file outside of its directory, and is not followed; name the file that it leads to"
    )]
    LeadsOut,
    /// It is larger than any policy.
    #[error("the file is larger than 4 MiB")]
    TooLarge,
    /// It is in another encoding.
    #[error("the file is not UTF-8 (byte {0})")]
    NotUtf8(usize),
    /// Another file has the same name with another ending.
    #[error("{0} has the same site name")]
    DuplicateSite(String),
    /// It was there before, and is gone: the name of its site.
    #[error(
        "the file is gone; crawlgate keeps its last good policy. Put the file back, give its hosts to another file, or end \
         the site by `crawlgate reload --remove {0}` (in an application: `remove_site`)"
    )]
    Removed(String),
}

impl Unreadable {
    /// The finding about the whole file, with an id for each kind of reason.
    pub fn diagnostic(&self) -> Diagnostic {
        let id = match self.why {
            Unread::NotAFile | Unread::Io(_) => "unreadable",
            Unread::LeadsOut => "leads-out",
            Unread::TooLarge => "too-large",
            Unread::NotUtf8(_) => "not-utf8",
            Unread::Removed(_) => "removed",
            Unread::DuplicateSite(_) => return duplicate_site(&self.why),
        };
        Diagnostic::whole_file(id, self.why.to_string())
    }
}

fn duplicate_site(why: &Unread) -> Diagnostic {
    let help = "the site name is the file name: rename one of them";
    Diagnostic::whole_file("duplicate-site", why.to_string()).help(help)
}

/// The finding for the later of two files with the same site name.
pub fn same_site_name(other: &str) -> Diagnostic {
    duplicate_site(&Unread::DuplicateSite(other.to_owned()))
}

/// The policy files directly inside a directory, in the order of their names: `*.yaml` and `*.yml`
/// without hidden files, directories, and names that are not UTF-8.
///
/// # Errors
/// The directory cannot be read as a whole: an entry that cannot be read might be a policy.
pub fn policy_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
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
        // Kubernetes mounts a ConfigMap as links; what a link leads to counts.
        if is_policy && is_named && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The policies of a directory by site name. A file that cannot be read is among them as an error,
/// so that its site stays. Two files with the same site name give one error, in place of both
/// texts.
///
/// # Errors
/// As for [`policy_files`].
pub fn policies(directory: &Path) -> io::Result<BTreeMap<String, PolicyText>> {
    let mut found: BTreeMap<String, (String, PolicyText)> = BTreeMap::new();
    for path in policy_files(directory)? {
        let site = site_name(&path);
        let name = printable_path(&path);
        let text = match found.get(&site) {
            Some((other, _)) => Err(Unreadable {
                path: name.clone(),
                why: Unread::DuplicateSite(other.clone()),
            }),
            None => read(&path),
        };
        found.insert(site, (name, text));
    }
    Ok(found
        .into_iter()
        .map(|(site, (_, text))| (site, text))
        .collect())
}

/// The files of a directory that its policies can name, at most 256 of them: not hidden, and with
/// one of the endings for such files. A file that cannot be read or is too large is left out: the
/// policy that names it has an error. Empty if the directory cannot be read.
pub fn included_files(directory: &Path) -> IncludedFiles {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let path = entry.path();
        let name = path.file_name()?.to_str()?.to_owned();
        let ending = path.extension()?.to_str()?;
        // As for policies: what a link leads to counts, and a pipe would wait.
        let can_be_named = included::ENDINGS.contains(&ending) && !name.starts_with('.');
        (can_be_named && path.is_file()).then_some((name, path))
    });
    let mut files = IncludedFiles::default();
    for (name, path) in named.take(MAX_INCLUDED) {
        if let Ok(bytes) = read_file(&path, included::MAX_FILE) {
            files.0.insert(name, bytes.into());
        }
    }
    files
}

/// The site that a policy file is for: the name of the file without its ending.
pub fn site_name(path: &Path) -> String {
    printable_path(Path::new(path.file_stem().unwrap_or_default()))
}

/// Whether a path is a link to a file outside of its directory. By such a link whoever proposes a
/// policy could have another file of the machine printed. False if the path cannot be resolved.
pub fn leads_out(path: &Path) -> bool {
    // Kubernetes mounts a ConfigMap as links within the directory.
    match (directory_of(path).canonicalize(), path.canonicalize()) {
        (Ok(directory), Ok(file)) => !file.starts_with(directory),
        _ => false,
    }
}

/// Reads one policy file. Follows a link wherever it leads; see `leads_out`.
///
/// # Errors
/// It is no regular file, cannot be read, is larger than 4 MiB, or is not UTF-8. See [`Unread`].
pub fn read(path: &Path) -> PolicyText {
    let name = printable_path(path);
    match read_text(path) {
        Ok(text) => Ok(Source {
            name: name.into(),
            text: text.into(),
        }),
        Err(why) => Err(Unreadable { path: name, why }),
    }
}

fn read_text(path: &Path) -> Result<String, Unread> {
    // Opening a pipe waits until another process writes into it.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Unread::NotAFile);
    }
    let bytes = read_file(path, MAX_BYTES).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => Unread::TooLarge,
        _ => Unread::Io(error.to_string()),
    })?;
    String::from_utf8(bytes).map_err(|error| Unread::NotUtf8(error.utf8_error().valid_up_to()))
}
