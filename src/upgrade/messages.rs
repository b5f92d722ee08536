//! What the process before ([`FromPredecessor`]) and the next one ([`FromSuccessor`]) say to each other. Later versions of
//! crawlgate speak with earlier ones: a message may get optional fields, a message that is new is ignored, and none changes
//! its meaning.

use crate::acme::PassedQuestions;
use crate::ledger::{PassedBehaviours, ServedCopy};
use crate::settings::ListenAddress;
use crate::upstreams::PassedServer;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the process before says, in this order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum FromPredecessor {
    /// What there is to take over.
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
        /// Which they are.
        listeners: Vec<PassedListener>,
    },
    /// What is in no table of the state directory.
    Memory {
        /// It.
        memory: Box<Memory>,
    },
    /// All listeners were passed, and the state directory is closed. The descriptors are those of the named locks.
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
    /// This process served a robots.txt.
    Served {
        /// Which.
        copy: ServedCopy,
    },
    /// This process ends, and has told what it served.
    Farewell {
        /// Connections that are cut off: what is served to them until then is not told.
        #[serde(default)]
        cut_off: usize,
    },
    /// A later version says it.
    #[serde(other)]
    Unknown,
}

/// What is in no table of the state directory. What a version does not know is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// How much time crawlgate has lived through, in milliseconds: crawl rates are by that clock.
    pub lived: u64,
    /// What clients did.
    pub behaviours: Option<PassedBehaviours>,
    /// The servers of origins that get no requests.
    pub servers: Vec<PassedServer>,
    /// What an authority may ask for.
    pub questions: PassedQuestions,
}

/// What the next process says, in this order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum FromSuccessor {
    /// Settings, policies, certificates and state are fine, and what only this process listens on is bound.
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
    /// A later version says it.
    #[serde(other)]
    Unknown,
}

/// A listener that is passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedListener {
    /// Which it is.
    pub name: ListenAddress,
    /// Whether it is the service manager's.
    pub is_managed: bool,
}
