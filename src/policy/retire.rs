//! The stages in which the section `retire` of a policy takes paths out of search engines
//! ([`RetireStage`]). First the paths get `noindex` and stay crawlable, so that search engines see
//! the `noindex`. Later robots.txt disallows the paths. [`RetirePolicy::stage`] computes the stage
//! from the time alone.

use super::model::{Environment, Policy, RetirePolicy};
use crate::time::Timestamp;
use RetireStage::*;
use strum::IntoStaticStr;

/// A stage of retired paths. Time moves them from each stage to the next.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RetireStage {
    /// Nothing is published yet.
    Planned,
    /// Crawlable, with noindex: search engines see it and drop the pages.
    Noindex,
    /// Disallowed: search engines should have dropped the pages.
    Disallowed,
}

impl RetireStage {
    pub const ALL: [RetireStage; 3] = [Planned, Noindex, Disallowed];
}

impl RetirePolicy {
    /// When the last stage begins.
    pub fn disallowed_from(&self) -> Timestamp {
        self.noindex_from.plus(self.disallow_after)
    }

    /// The stage at a time.
    pub fn stage(&self, at: Timestamp) -> RetireStage {
        if at < self.noindex_from.value {
            Planned
        } else if at < self.disallowed_from() {
            Noindex
        } else {
            Disallowed
        }
    }

    /// When the stage next changes after `after`; `None` in the last stage.
    pub fn next_switch(&self, after: Timestamp) -> Option<Timestamp> {
        [self.noindex_from.value, self.disallowed_from()]
            .into_iter()
            .find(|moment| after < *moment)
    }
}

impl Policy {
    /// The entries of `retire` that apply. A staging site has none: all of it is noindex, and must
    /// stay crawlable.
    pub fn retirements(&self) -> &[RetirePolicy] {
        if self.environment == Environment::Staging {
            &[]
        } else {
            &self.retire
        }
    }

    /// When retirement next changes what is published, after `after`.
    pub fn next_switch(&self, after: Timestamp) -> Option<Timestamp> {
        self.retirements()
            .iter()
            .filter_map(|retire| retire.next_switch(after))
            .min()
    }
}
