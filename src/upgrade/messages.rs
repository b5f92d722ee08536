//! The messages between the two processes of an upgrade: those of the process that ran before
//! ([`FromPredecessor`]), and those of the next one ([`FromSuccessor`]). Processes of different
//! versions exchange them: a message may get optional fields, and none changes its meaning. A
//! process ignores an unknown message, except where it waits for the first message of the other
//! process, or for a certain answer.

use crate::facts::Fact;
use crate::ledger::PassedBehaviours;
use crate::settings::ListenAddress;
use crate::upstreams::PassedServer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// The messages of the process before, in their order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum FromPredecessor {
    /// The things that the next process can take over.
    Hello {
        /// The listeners, each as often as there are listeners under the name.
        listeners: Vec<ListenAddress>,
        /// The state directory.
        state: Option<PathBuf>,
        /// The control socket.
        control: Option<PathBuf>,
    },
    /// Listeners, with a descriptor each.
    Listeners {
        /// Their addresses in the settings.
        listeners: Vec<PassedListener>,
    },
    /// Facts that are in no table of the state directory.
    Memory {
        /// These facts.
        memory: Box<Memory>,
    },
    /// All listeners were passed, and the state directory is closed. The descriptors are those of
    /// the named locks.
    Yours {
        /// Whether the lock of the state directory is the first descriptor.
        state: bool,
        /// Whether the lock of the control socket is the next one.
        control: bool,
    },
    /// The next process may serve. The descriptors are standard output and standard error.
    Go,
    /// This process accepts no connection any more.
    Leaving,
    /// Something happened at this process after it closed the state directory.
    Happened {
        /// A robots.txt that was served, the mark of a client, or the like.
        fact: Fact,
    },
    /// This process ends, and has told what it served.
    Farewell {
        /// Connections that are cut off: what is served to them until then is not told.
        #[serde(default)]
        cut_off: usize,
    },
    /// A message of a later version.
    #[serde(other)]
    Unknown,
}

/// Facts that are in no table of the state directory. A version leaves out what it does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// How much time crawlgate has lived through, in milliseconds: crawl rates are by that clock.
    pub lived: u64,
    /// Crawl rates and proven fetches of clients.
    pub behaviours: Option<PassedBehaviours>,
    /// The servers of origins that get no requests.
    pub servers: Vec<PassedServer>,
    /// The answers to the open challenges of an authority, as `acme` passes them.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub questions: Value,
}

/// The messages of the next process, in their order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum FromSuccessor {
    /// Settings, policies, certificates and state are fine, and what only this process listens on
    /// is bound.
    Ready {
        /// The listeners that it takes over.
        takes: Vec<ListenAddress>,
        /// Whether it takes over the control socket.
        takes_control: bool,
    },
    /// Everything is open, and nothing was written.
    Opened,
    /// Every listener accepts connections.
    Serving,
    /// Commands reach this process, too.
    Settled,
    /// The logs were rotated.
    Reopen,
    /// The process before is to end now.
    End,
    /// A message of a later version.
    #[serde(other)]
    Unknown,
}

/// A listener that is passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedListener {
    /// Its address in the settings.
    pub name: ListenAddress,
    /// Whether it is the service manager's.
    pub is_managed: bool,
}
