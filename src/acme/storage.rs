//! [`Storage`]: the files about one certificate authority in the state directory: the account, and
//! the certificate and progress of each host. Only their owner may read them, and each file is
//! replaced as a whole, so that a crash leaves the old file or the new one.

use super::certificate::IssuedCertificate;
use super::failure::StorageError;
use super::progress::Progress;
use crate::files::read_own;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The account at the authority.
#[derive(Serialize, Deserialize)]
pub struct StoredAccount {
    /// The address that the authority was told.
    pub email: Option<String>,
    /// Its URL and its key.
    pub credentials: serde_json::Value,
}

/// The files of one authority.
pub struct Storage {
    directory: PathBuf,
}

impl Storage {
    /// The files of the authority with this directory URL, in `acme` in the state directory. Each
    /// authority has a directory of its own, named by its URL: without `https://`, at most 100
    /// characters, and `-` for all but letters, digits and dots.
    pub fn new(state: &Path, authority: &str) -> Storage {
        let name = authority.strip_prefix("https://").unwrap_or(authority);
        let name: String = name.trim_end_matches('/').chars().take(100).collect();
        let name = name.replace(
            |sign: char| !(sign.is_ascii_alphanumeric() || sign == '.'),
            "-",
        );
        Storage {
            directory: state.join("acme").join(name),
        }
    }

    /// Makes the directory.
    pub fn prepare(&self) -> Result<(), StorageError> {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory);
        made.map_err(|source| StorageError {
            path: self.directory.clone(),
            source,
        })
    }

    /// The account; `None` where there is none, or one that cannot be used.
    pub fn account(&self) -> Result<Option<StoredAccount>, StorageError> {
        self.read_json("account.json")
    }

    pub fn write_account(&self, account: &StoredAccount) -> Result<(), StorageError> {
        self.write_json("account.json", account)
    }

    /// Forgets the account: the authority does not know it.
    pub fn remove_account(&self) {
        let _ = std::fs::remove_file(self.directory.join("account.json"));
    }

    /// The stored state of a host. A file that cannot be used counts as a missing one.
    pub fn progress(&self, host: &str) -> Progress {
        self.read_json(&format!("{host}.json"))
            .ok()
            .flatten()
            .unwrap_or_default()
    }

    pub fn write_progress(&self, host: &str, progress: &Progress) -> Result<(), StorageError> {
        self.write_json(&format!("{host}.json"), progress)
    }

    /// The file with the certificate of a host.
    pub fn certificate_file(&self, host: &str) -> PathBuf {
        self.directory.join(format!("{host}.pem"))
    }

    /// Stores a key and a chain, both in PEM.
    pub fn write_certificate(&self, host: &str, pem: &str) -> Result<(), StorageError> {
        self.write(&format!("{host}.pem"), pem.as_bytes())
    }

    /// All stored certificates, also expired ones. A certificate that cannot be used is logged and
    /// left out, so it is ordered again.
    pub fn certificates(&self) -> Vec<IssuedCertificate> {
        let entries = std::fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let certificates = names.filter_map(|name| {
            let host = name.strip_suffix(".pem")?;
            let pem = self.read(&name).ok().flatten()?;
            let read = IssuedCertificate::read(host, &pem, self.certificate_file(host));
            read.map_err(|error| {
                tracing::warn!(
                    host,
                    "the stored certificate cannot be used: {error}; it is ordered again"
                )
            })
            .ok()
        });
        certificates.collect()
    }

    /// The text of a file in the directory; `None` if there is none.
    fn read(&self, name: &str) -> Result<Option<String>, StorageError> {
        let path = self.directory.join(name);
        match read_own(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StorageError { path, source }),
        }
    }

    /// A value from a JSON file; `None` if there is no file, or one that is not such a value.
    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StorageError> {
        Ok(self
            .read(name)?
            .and_then(|text| serde_json::from_str(&text).ok()))
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), StorageError> {
        let text = serde_json::to_vec_pretty(value).map_err(|error| StorageError {
            path: self.directory.join(name),
            source: error.into(),
        })?;
        self.write(name, &text)
    }

    /// Replaces a file in the directory as a whole, readable by the owner only, and waits until it
    /// is on the disk.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        let path = self.directory.join(name);
        self.replace(&path, content)
            .map_err(|source| StorageError { path, source })
    }

    fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        // Its mode is 0600.
        let mut file = tempfile::Builder::new()
            .prefix(".new-")
            .tempfile_in(&self.directory)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        File::open(&self.directory)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::{Storage, StoredAccount};
    use crate::acme::progress::Progress;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_for_their_owner_and_damaged_ones_are_as_good_as_none() {
        let state = tempfile::tempdir().expect("a directory");
        let storage = Storage::new(state.path(), "https://ca.example:14000/dir");
        assert!(
            storage.account().expect("none").is_none(),
            "there is no directory yet"
        );
        storage.prepare().expect("made");
        storage
            .write_account(&StoredAccount {
                email: None,
                credentials: 1.into(),
            })
            .expect("written");
        storage
            .write_progress("shop.example", &Progress::default())
            .expect("written");
        storage
            .write_certificate("shop.example", "none")
            .expect("written");
        let directory = state.path().join("acme/ca.example-14000-dir");
        assert_eq!(
            fs::metadata(&directory)
                .expect("there")
                .permissions()
                .mode()
                & 0o777,
            0o700
        );
        for name in ["account.json", "shop.example.json", "shop.example.pem"] {
            let file = directory.join(name);
            assert_eq!(
                fs::metadata(&file).expect("there").permissions().mode() & 0o777,
                0o600,
                "{name}"
            );
            fs::write(&file, "\0{").expect("damaged");
        }
        assert!(storage.account().expect("readable").is_none());
        assert!(storage.progress("shop.example") == Progress::default());
        assert!(storage.certificates().is_empty());
        assert!(storage.write_progress("a/b", &Progress::default()).is_err());
    }

    #[test]
    fn another_authority_has_other_files() {
        let state = tempfile::tempdir().expect("a directory");
        let of = |url: &str| Storage::new(state.path(), url).directory;
        assert_ne!(
            of("https://a.example/directory"),
            of("https://staging.a.example/directory")
        );
        assert_eq!(
            of("https://a.example/../../etc").parent(),
            Some(state.path().join("acme").as_path())
        );
    }
}
