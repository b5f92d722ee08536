//! [`InheritedListeners`]: listeners that were bound before this process started. They are found by
//! their addresses in the settings. A service manager passes listeners by the protocol of systemd
//! (`LISTEN_FDS`, sd_listen_fds(3)). In an upgrade, the previous process passes its listeners over
//! a [`ProcessChannel`](super::channel::ProcessChannel).

use super::messages::HandedOverListener;
use crate::edge::BoundListener;
use crate::settings::ListenAddress;
use listenfd::ListenFd;
use std::os::fd::OwnedFd;

/// Non-blocking listeners that nobody has taken yet.
#[derive(Default)]
pub struct InheritedListeners(Vec<InheritedListener>);

struct InheritedListener {
    passed: HandedOverListener,
    listener: BoundListener,
    /// Its name in `FileDescriptorName=`.
    manager_name: String,
}

impl InheritedListeners {
    /// The listeners that the service manager passed. Logs and skips unusable sockets. Call it before
    /// any thread is started: it removes environment variables.
    pub fn from_service_manager() -> InheritedListeners {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':').map(str::to_owned);
        let mut passed = ListenFd::from_env();
        let mut inherited = InheritedListeners::default();
        for place in 0..passed.len() {
            let manager_name = names
                .next()
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "unknown".to_owned());
            let listener = match (
                passed.take_tcp_listener(place),
                passed.take_unix_listener(place),
            ) {
                (Ok(Some(listener)), _) => BoundListener::Tcp(listener),
                (_, Ok(Some(listener))) => BoundListener::Unix(listener),
                _ => {
                    tracing::warn!(
                        "the service manager passed the socket {manager_name}, which is no stream listener; crawlgate \
                         does not use it"
                    );
                    continue;
                }
            };
            match prepare_listener(&listener) {
                Ok(name) => {
                    let passed = HandedOverListener {
                        name,
                        is_managed: true,
                    };
                    inherited.push(passed, listener, manager_name);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot use the socket {manager_name} of the service manager")
                }
            }
        }
        inherited
    }

    /// Adds a listener that this process has bound.
    pub fn add_bound(&mut self, name: ListenAddress, listener: BoundListener) {
        let passed = HandedOverListener {
            name,
            is_managed: false,
        };
        self.push(passed, listener, String::new());
    }

    /// Adds a listener that the previous process has passed.
    pub fn add_handed_over(&mut self, passed: HandedOverListener, descriptor: OwnedFd) {
        let listener = match &passed.name {
            ListenAddress::Tcp(_) => BoundListener::Tcp(descriptor.into()),
            ListenAddress::Unix(_) => BoundListener::Unix(descriptor.into()),
        };
        self.push(passed, listener, String::new());
    }

    fn push(&mut self, passed: HandedOverListener, listener: BoundListener, manager_name: String) {
        self.0.push(InheritedListener {
            passed,
            listener,
            manager_name,
        });
    }

    /// Takes out the first listener with this address.
    pub fn take(&mut self, name: &ListenAddress) -> Option<(BoundListener, HandedOverListener)> {
        let place = self.0.iter().position(|entry| entry.passed.name == *name)?;
        let InheritedListener {
            passed, listener, ..
        } = self.0.remove(place);
        Some((listener, passed))
    }

    /// Closes the remaining listeners. Logs those of the service manager, which the settings do not
    /// name.
    pub fn close_unused(self) {
        for InheritedListener {
            passed,
            manager_name,
            ..
        } in self.0.iter().filter(|entry| entry.passed.is_managed)
        {
            let name = match &passed.name {
                ListenAddress::Tcp(address) => address.to_string(),
                unix @ ListenAddress::Unix(_) => unix.to_string(),
            };
            tracing::warn!(
                "the service manager passed the socket {manager_name} for {name}, which is not in the settings, so \
                 clients get no answer there. Write exactly this address in the settings, or remove it from the \
                 socket unit"
            );
        }
    }
}

/// Makes a listener non-blocking, and returns its address. An error for a Unix socket without a path.
fn prepare_listener(listener: &BoundListener) -> std::io::Result<ListenAddress> {
    match listener {
        BoundListener::Tcp(listener) => {
            listener.set_nonblocking(true)?;
            listener.local_addr().map(ListenAddress::Tcp)
        }
        BoundListener::Unix(listener) => {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let path = address
                .as_pathname()
                .ok_or_else(|| std::io::Error::other("it has no name in the file system"));
            path.map(|path| ListenAddress::Unix(path.to_owned()))
        }
    }
}
