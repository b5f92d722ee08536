//! [`AcmeStorage`] reads and writes what crawlgate keeps on disk about one certificate authority:
//! the ACME account, and for each host the certificate and the state of its order. Only the user
//! that runs crawlgate may read the files. A file is always replaced as a whole, so that a crash
//! leaves either the old file or the new one.

use super::certificate::IssuedCertificate;
use super::failure::StorageError;
use super::progress::HostProgress;
use crate::files::read_own_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The account at the authority.
#[derive(Serialize, Deserialize)]
pub struct StoredAccount {
    /// The contact address at the authority.
    pub email: Option<String>,
    /// Its URL and its key.
    pub credentials: serde_json::Value,
}

/// The directory with the files of one authority.
pub struct AcmeStorage {
    directory: PathBuf,
}

impl AcmeStorage {
    /// `authority` is the directory URL. The files are in `acme/NAME` of the state directory, where
    /// `NAME` is the URL without `https://`, at most 100 characters, with `-` for all but letters,
    /// digits and dots.
    pub fn new(state: &Path, authority: &str) -> AcmeStorage {
        let name = authority.strip_prefix("https://").unwrap_or(authority);
        let name: String = name.trim_end_matches('/').chars().take(100).collect();
        let name = name.replace(
            |sign: char| !(sign.is_ascii_alphanumeric() || sign == '.'),
            "-",
        );
        AcmeStorage {
            directory: state.join("acme").join(name),
        }
    }

    pub fn create_directory(&self) -> Result<(), StorageError> {
        let path = self.directory.clone();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|source| StorageError { path, source })
    }

    /// `None` also for a damaged file.
    pub fn read_account(&self) -> Result<Option<StoredAccount>, StorageError> {
        self.read_json("account.json")
    }

    pub fn write_account(&self, account: &StoredAccount) -> Result<(), StorageError> {
        self.write_json("account.json", account)
    }

    pub fn remove_account(&self) {
        let _ = std::fs::remove_file(self.directory.join("account.json"));
    }

    /// The stored state of a host; the default if the file is missing or damaged.
    pub fn read_progress(&self, host: &str) -> HostProgress {
        self.read_json(&format!("{host}.json"))
            .ok()
            .flatten()
            .unwrap_or_default()
    }

    pub fn write_progress(&self, host: &str, progress: &HostProgress) -> Result<(), StorageError> {
        self.write_json(&format!("{host}.json"), progress)
    }

    pub fn certificate_file(&self, host: &str) -> PathBuf {
        self.directory.join(format!("{host}.pem"))
    }

    /// Stores a key and a chain, both in PEM.
    pub fn write_certificate(&self, host: &str, pem: &str) -> Result<(), StorageError> {
        self.write_file(&format!("{host}.pem"), pem.as_bytes())
    }

    /// All stored certificates, also expired ones. A damaged one is logged and left out, so it is
    /// ordered again.
    pub fn read_certificates(&self) -> Vec<IssuedCertificate> {
        let mut certificates = Vec::new();
        for entry in std::fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().into_string().unwrap_or_default();
            if let Some(host) = name.strip_suffix(".pem")
                && let Ok(Some(pem)) = self.read_file(&name)
            {
                match IssuedCertificate::from_pem(host, &pem, self.certificate_file(host)) {
                    Ok(certificate) => certificates.push(certificate),
                    Err(error) => tracing::warn!(
                        host,
                        "the stored certificate cannot be used: {error}; it is ordered again"
                    ),
                }
            }
        }
        certificates
    }

    /// `None` if there is no such file.
    fn read_file(&self, name: &str) -> Result<Option<String>, StorageError> {
        let path = self.directory.join(name);
        match read_own_file(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StorageError { path, source }),
        }
    }

    /// `None` if the file is missing or damaged.
    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StorageError> {
        Ok(self
            .read_file(name)?
            .and_then(|text| serde_json::from_str(&text).ok()))
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), StorageError> {
        let text = serde_json::to_vec_pretty(value).map_err(|error| StorageError {
            path: self.directory.join(name),
            source: error.into(),
        })?;
        self.write_file(name, &text)
    }

    /// Replaces a file atomically, readable by the owner only, and waits until it is on the disk.
    fn write_file(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        let path = self.directory.join(name);
        self.replace_file(&path, content)
            .map_err(|source| StorageError { path, source })
    }

    fn replace_file(&self, path: &Path, content: &[u8]) -> io::Result<()> {
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
    use super::{AcmeStorage, StoredAccount};
    use crate::acme::progress::HostProgress;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_private_and_damaged_ones_are_ignored() {
        let state = tempfile::tempdir().expect("a directory");
        let storage = AcmeStorage::new(state.path(), "https://ca.example:14000/dir");
        assert!(
            storage.read_account().expect("none").is_none(),
            "there is no directory yet"
        );
        storage.create_directory().expect("made");
        storage
            .write_account(&StoredAccount {
                email: None,
                credentials: 1.into(),
            })
            .expect("written");
        storage
            .write_progress("shop.example", &HostProgress::default())
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
        assert!(storage.read_account().expect("readable").is_none());
        assert!(storage.read_progress("shop.example") == HostProgress::default());
        assert!(storage.read_certificates().is_empty());
        assert!(
            storage
                .write_progress("a/b", &HostProgress::default())
                .is_err()
        );
    }

    #[test]
    fn authorities_have_separate_files() {
        let state = tempfile::tempdir().expect("a directory");
        let of = |url: &str| AcmeStorage::new(state.path(), url).directory;
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
