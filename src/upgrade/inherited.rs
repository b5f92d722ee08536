//! [`Inherited`]: listeners that were bound before this process started, by their addresses in the
//! settings. A service manager passes them by the protocol of systemd (`LISTEN_FDS`,
//! sd_listen_fds(3)), and the previous process of an upgrade passes them over a
//! [`Channel`](super::channel::Channel).

use super::messages::PassedListener;
use crate::edge::BoundListener;
use crate::settings::ListenAddress;
use listenfd::ListenFd;
use std::os::fd::OwnedFd;

/// Listeners that no service has taken yet. None of them blocks.
#[derive(Debug, Default)]
pub struct Inherited(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    passed: PassedListener,
    listener: BoundListener,
    /// The name that `FileDescriptorName=` gives it.
    said: String,
}

impl Inherited {
    /// Takes the listeners that the service manager passes. A socket that cannot be used is logged
    /// and left out. To be called before any thread is started: the variables of the environment
    /// are removed.
    pub fn from_service_manager() -> Inherited {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':').map(str::to_owned);
        let mut passed = ListenFd::from_env();
        let mut inherited = Inherited::default();
        for place in 0..passed.len() {
            let said = names
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
                        "the service manager passed the socket `{said}`, which is no listener for streams; crawlgate leaves \
                         it alone"
                    );
                    continue;
                }
            };
            match prepare(&listener) {
                Ok(name) => {
                    let passed = PassedListener {
                        name,
                        is_managed: true,
                    };
                    inherited.push(passed, listener, said);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot use the socket `{said}` of the service manager")
                }
            }
        }
        inherited
    }

    /// Adds a listener that this process has bound.
    pub fn add(&mut self, name: ListenAddress, listener: BoundListener) {
        let passed = PassedListener {
            name,
            is_managed: false,
        };
        self.push(passed, listener, String::new());
    }

    /// Adds a listener that the process before has passed.
    pub fn pass(&mut self, passed: PassedListener, descriptor: OwnedFd) {
        let listener = match &passed.name {
            ListenAddress::Tcp(_) => BoundListener::Tcp(descriptor.into()),
            ListenAddress::Unix(_) => BoundListener::Unix(descriptor.into()),
        };
        self.push(passed, listener, String::new());
    }

    fn push(&mut self, passed: PassedListener, listener: BoundListener, said: String) {
        self.0.push(Entry {
            passed,
            listener,
            said,
        });
    }

    /// Takes out the first listener with this address; `None` if there is none.
    pub fn take(&mut self, name: &ListenAddress) -> Option<(BoundListener, PassedListener)> {
        let place = self.0.iter().position(|entry| entry.passed.name == *name)?;
        let Entry {
            passed, listener, ..
        } = self.0.remove(place);
        Some((listener, passed))
    }

    /// Closes the listeners that no service has taken, and logs those of the service manager: the
    /// settings do not name them.
    pub fn close_the_rest(self) {
        for Entry { passed, said, .. } in self.0.iter().filter(|entry| entry.passed.is_managed) {
            let name = match &passed.name {
                ListenAddress::Tcp(address) => address.to_string(),
                unix @ ListenAddress::Unix(_) => unix.to_string(),
            };
            tracing::warn!(
                "the service manager passed the socket `{said}` for {name}, which is no listener of the settings; clients \
                 that connect there get no answer. Name it in the settings exactly so, or take it out of the socket unit"
            );
        }
    }
}

/// Makes a listener non-blocking for the runtime, and returns its address. An error for a Unix
/// socket without a path.
fn prepare(listener: &BoundListener) -> std::io::Result<ListenAddress> {
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
