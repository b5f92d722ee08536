//! Opens internal modules to crawlgate's own tests, benches and examples, with the feature
//! `internals`. Nothing here is a public interface: it changes without notice.

#![allow(missing_docs)]

macro_rules! open {
    ($($module:ident)*) => {
        $(
            pub mod $module {
                pub use crate::$module::*;
            }
        )*
    };
}

open!(logs policy publications verdict);
#[cfg(feature = "html")]
open!(html);
#[cfg(feature = "gate")]
open!(
    clock facts forwarding hash heads identity judge ledger record referrals requests settings sites
    state telemetry upkeep
);
#[cfg(feature = "proxy")]
open!(admin edge evidence exchange export origin report server sitemap upstreams);

pub mod crawlers {
    pub use crate::crawlers::identify::SiteMarkers;
    pub use crate::crawlers::network_list::parse_network_list;
}

pub mod robots {
    pub use crate::robots::dialect::url_path;
    pub use crate::robots::normalise::LITERAL_STAR;
    pub use crate::robots::rule_set::RuleSet;
    pub use crate::robots::target::TargetScratch;
}

pub mod yaml {
    pub use crate::yaml::tree::{Node, NodeValue, YamlDocument};
}
