//! [`RetireStage`]: how far paths are taken out of search engines. They are first `noindex` and
//! still crawlable, so that search engines see the `noindex`, and disallowed later.
//! [`RetirePolicy::stage`] gives the stage at a moment.

use super::model::{Environment, Policy, RetirePolicy};
use crate::time::Timestamp;
use strum::IntoStaticStr;

/// A stage of paths that are retired.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RetireStage {
    /// Nothing is said yet.
    Planned,
    /// Crawlable, with noindex: search engines come by, see it, and drop the page.
    Noindex,
    /// Disallowed: search engines have dropped the pages by now.
    Disallowed,
}

impl RetireStage {
    /// All stages, in their order.
    pub const ALL: [RetireStage; 3] = [
        RetireStage::Planned,
        RetireStage::Noindex,
        RetireStage::Disallowed,
    ];
}

impl RetirePolicy {
    /// From when the paths are disallowed.
    pub fn disallowed_from(&self) -> Timestamp {
        self.noindex_from.plus(self.disallow_after.value)
    }

    /// The stage of the paths at a moment. The moments of `noindex_from` and `disallowed_from`
    /// belong to the later stage.
    pub fn stage(&self, at: Timestamp) -> RetireStage {
        match () {
            () if at < self.noindex_from.value => RetireStage::Planned,
            () if at < self.disallowed_from() => RetireStage::Noindex,
            () => RetireStage::Disallowed,
        }
    }

    /// The first moment after `after` at which the paths go on to the next stage; `None` if they
    /// are in the last.
    pub fn next_switch(&self, after: Timestamp) -> Option<Timestamp> {
        [self.noindex_from.value, self.disallowed_from()]
            .into_iter()
            .find(|moment| after < *moment)
    }
}

impl Policy {
    /// The paths that are retired. A staging site has none: it says noindex of all and stays
    /// crawlable so that it is seen.
    pub fn retiring(&self) -> &[RetirePolicy] {
        if self.environment == Environment::Staging {
            &[]
        } else {
            &self.retire
        }
    }

    /// The first moment after `after` at which retirement changes what is published; `None` if it
    /// does not change any more, and for a staging site.
    pub fn next_switch(&self, after: Timestamp) -> Option<Timestamp> {
        self.retiring()
            .iter()
            .filter_map(|retire| retire.next_switch(after))
            .min()
    }
}
