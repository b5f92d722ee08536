//! The command-line flags that tell a command where to find crawlgate. [`ControlFlag`]
//! (`--control`) names the control socket of the running process; its methods send requests there.
//! [`StateFlag`] (`--state`) names the state directory. If one of these flags is not given, the
//! value comes from the settings file that [`ConfigFlag`] (`--config`) names. Without a settings
//! file, the command uses the default path.

use super::shell_words::shell_quote;
use super::{Failure, Result, default_paths, server_flags};
use crate::admin::control::{ControlError, ControlRequest, ControlResponse, send_request};
use crate::finding::Finding;
use crate::printable::printable_path;
use crate::settings::Settings;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The flag `--config`.
#[derive(clap::Args)]
pub struct ConfigFlag {
    /// The settings file, which names the policies, the state directory and the control socket
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigFlag {
    /// The flag for a command that people paste, with a blank behind it; empty without the flag.
    pub fn to_shell_option(&self) -> String {
        self.config.as_ref().map_or_else(String::new, |path| {
            format!("--config {} ", shell_quote(path))
        })
    }

    /// The settings of the file. Prints its mistakes, and fails if there are any.
    pub fn settings(&self) -> Result<Option<Settings>> {
        self.config
            .as_deref()
            .map(server_flags::load_settings_alone)
            .transpose()
    }

    /// The state directory: that of the flag `--state`, else that of the file, else the default.
    pub fn state_directory(&self, flag: Option<&Path>) -> Result<PathBuf> {
        if let Some(directory) = flag {
            return Ok(directory.to_owned());
        }
        let directory = self
            .settings()?
            .map_or_else(default_paths::state_directory, |settings| settings.state)
            .ok_or_else(|| {
                Failure::Usage("there is no state directory here; name one with --state DIR".into())
            })?;
        let hint = self.settings_hint();
        if hint.is_empty() || directory.is_dir() {
            return Ok(directory);
        }
        fail!(
            Runtime,
            "there is no state directory {}{hint}",
            printable_path(&directory)
        )
    }

    /// The end of a failure where crawlgate was not found: that this directory has a settings file,
    /// which is not given. Empty if it has none.
    fn settings_hint(&self) -> &'static str {
        if self.config.is_none() && Path::new("crawlgate.yaml").is_file() {
            ". crawlgate.yaml is in this directory: add --config crawlgate.yaml"
        } else {
            ""
        }
    }
}

/// The flags `--state` and `--config`.
#[derive(clap::Args)]
pub struct StateFlag {
    /// The state directory [default: as in --config, or where run puts it]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFlag,
}

impl StateFlag {
    /// The directory of the flags, else the default one.
    pub fn path_or_default(&self) -> Result<PathBuf> {
        self.config.state_directory(self.state.as_deref())
    }
}

/// The flags `--control` and `--config`.
#[derive(clap::Args)]
pub struct ControlFlag {
    /// The control socket [default: as in --config, or where run puts it]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    #[command(flatten)]
    pub config: ConfigFlag,
}

/// The flags `--json`, `--control` and `--config`.
#[derive(clap::Args)]
pub struct ControlOutputFlags {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub control: ControlFlag,
}

impl ControlFlag {
    /// The path of the socket: that of `--control`, else that of the settings file, else the default.
    /// Warns of mistakes in the file.
    pub fn path(&self) -> Result<PathBuf> {
        if let Some(path) = &self.control {
            return Ok(path.clone());
        }
        self.config
            .config
            .as_deref()
            .map(server_flags::load_control)
            .transpose()?
            .filter(|path| *path != default_paths::control_socket_to_serve())
            .unwrap_or_else(default_paths::control_socket_to_connect)
            .ok_or_else(|| {
                Failure::Usage(
                    "there is no control socket here; name one with --control PATH".into(),
                )
            })
    }

    /// Like [`ControlFlag::send`]. `None`, with a note, if no crawlgate answers and `--control` is
    /// not given. A process that hangs is noticed soon: it is asked for its status first.
    pub fn send_if_running(&self, request: &ControlRequest) -> Result<Option<ControlResponse>> {
        let path = self.path()?;
        let answer =
            send_request(&path, &ControlRequest::Status).and_then(|_| send_request(&path, request));
        match answer {
            Err(ControlError::NotRunning { error, .. }) if self.control.is_none() => {
                match error.kind() {
                    ErrorKind::TimedOut => {
                        print_message!(
                            "note: crawlgate runs, but it hangs: it did not answer in time"
                        );
                    }
                    ErrorKind::PermissionDenied => {
                        print_message!("note: you may not use {}", path.display());
                    }
                    _ => print_message!("note: crawlgate is not running"),
                }
                Ok(None)
            }
            answer => accepted_response(answer?).map(Some),
        }
    }

    /// Sends a request, and returns the response. A refusal is a finding: the running crawlgate
    /// understood the request.
    pub fn send(&self, request: &ControlRequest) -> Result<ControlResponse> {
        self.send_to(&self.path()?, request)
    }

    /// Like [`ControlFlag::send`], to the socket of [`ControlFlag::path`].
    pub fn send_to(&self, socket: &Path, request: &ControlRequest) -> Result<ControlResponse> {
        match send_request(socket, request) {
            Err(error @ ControlError::NotRunning { .. }) if self.control.is_none() => {
                fail!(Runtime, "{error}{}", self.config.settings_hint())
            }
            answer => accepted_response(answer?),
        }
    }
}

/// Fails for a refusal.
fn accepted_response(response: ControlResponse) -> Result<ControlResponse> {
    match response {
        ControlResponse::Refused(refusal) => Err(Failure::FindingsMessage(refusal.message)),
        response => Ok(response),
    }
}

/// Prints why a change is not fully in force, or may be lost at a restart.
pub fn print_warnings(warnings: &[Finding]) {
    for warning in warnings {
        print_message!("warning: {warning}");
    }
}

/// The failure for a response to another request, as another version of crawlgate may send it.
pub fn unexpected_response() -> Result {
    fail!(
        Runtime,
        "the answer of the running crawlgate cannot be read; it may be another version"
    )
}
