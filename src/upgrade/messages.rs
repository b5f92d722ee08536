//! The messages between the two processes of an upgrade, in which one crawlgate process replaces
//! another: [`PredecessorMessage`] and [`SuccessorMessage`]. The processes may be of different
//! versions. So a later version may add optional fields to a message, but the meaning of a message
//! never changes. A process ignores a message that it does not know, unless it is the first message
//! or an expected answer.

use crate::facts::Fact;
use crate::settings::ListenAddress;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The messages of the previous process, in their order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum PredecessorMessage {
    /// What the next process can take over.
    Hello {
        /// The addresses of the listeners; several listeners may have one address.
        listeners: Vec<ListenAddress>,
        /// The state directory.
        state: Option<PathBuf>,
        /// The control socket.
        control: Option<PathBuf>,
    },
    /// Listeners, with a descriptor each.
    Listeners { listeners: Vec<HandedOverListener> },
    /// All listeners were passed, and the state directory is closed. The descriptors are the locks.
    #[serde(rename = "yours")]
    LocksPassed {
        /// Whether the lock of the state directory is the first descriptor.
        state: bool,
        /// Whether the lock of the control socket is the next one.
        control: bool,
    },
    /// The next process may accept connections. The descriptors are standard output and standard
    /// error.
    #[serde(rename = "go")]
    StartServing,
    /// This process accepts no connections any more.
    Leaving {
        /// How long it still answers the open ones at most.
        drain: Option<Duration>,
    },
    /// A fact that this process recorded after it closed the state directory.
    #[serde(rename = "happened")]
    FactRecorded {
        /// A robots.txt that was served, the mark of a client, or the like.
        fact: Fact,
    },
    /// This process ends, and has sent all facts.
    Farewell {
        /// How many connections are cut off. Facts about them are missing.
        #[serde(default)]
        cut_off: usize,
    },
    /// A message of a later version.
    #[serde(other)]
    Unknown,
}

/// The messages of the next process, in their order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum SuccessorMessage {
    /// Settings, policies, certificates and state are fine, and its own listeners are bound.
    Ready {
        /// The addresses of the listeners that it takes over.
        takes: Vec<ListenAddress>,
        /// Whether it takes over the control socket.
        takes_control: bool,
    },
    /// Everything is open, and nothing was written.
    Opened,
    /// Every listener accepts connections.
    Serving,
    /// The control socket of this process answers commands.
    #[serde(rename = "settled")]
    CommandsAnswered,
    /// The logs were rotated.
    #[serde(rename = "reopen")]
    LogsRotated,
    /// The previous process must end now.
    #[serde(rename = "end")]
    EndNow,
    /// A message of a later version.
    #[serde(other)]
    Unknown,
}

/// A listener that was bound by another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOverListener {
    /// Its address in the settings.
    pub name: ListenAddress,
    /// Whether the service manager bound it.
    pub is_managed: bool,
}
