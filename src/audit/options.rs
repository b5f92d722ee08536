//! [`Options`]: how the logs of an audit are read. Must not know what the lines are judged by.

use super::networks::PublishedNetworks;
use crate::logs::LineFormat;

/// How to read.
#[derive(Default)]
pub struct Options {
    /// The form of the lines.
    pub format: LineFormat,
    /// Judge only requests to this host. Lines without a host are taken to be for it.
    pub host: Option<String>,
    /// What operators publish, where it is at hand.
    pub networks: Option<PublishedNetworks>,
}
