//! The modules of crawlgate for its own tests, benches and examples, with the feature `internals`.
//! Nothing here is an interface: it changes without notice.

#![allow(missing_docs)]

macro_rules! open {
    ($($room:ident)*) => {
        $(
            pub mod $room {
                pub use crate::$room::*;
            }
        )*
    };
}

open!(logs policy publications verdict);
#[cfg(feature = "html")]
open!(html);
#[cfg(feature = "gate")]
open!(clock facts forwarding hash heads identity judge ledger record requests settings sites state telemetry upkeep);
#[cfg(feature = "proxy")]
open!(admin edge evidence exchange export origin report server shared_store upstreams);

pub mod crawlers {
    pub use crate::crawlers::identify::SiteMarkers;
    pub use crate::crawlers::network_list::read_list;
}

pub mod robots {
    pub use crate::robots::dialect::path_of_url;
    pub use crate::robots::normal::LITERAL_STAR;
    pub use crate::robots::rules::RuleSet;
    pub use crate::robots::target::TargetScratch;
}

pub mod yaml {
    pub use crate::yaml::tree::{Document, Node, Value};
}
