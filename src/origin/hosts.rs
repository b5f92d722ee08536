//! Finds the group of a host: [`Hosts`]. An exact name wins over the longest wildcard, and that over the group for all
//! other hosts. Must not know what a group is.

use smallvec::SmallVec;
use std::collections::HashMap;

/// Host patterns to group indexes.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    exact: HashMap<Vec<u8>, usize>,
    /// `.shop.example` for `*.shop.example`, the longest first.
    wildcards: Vec<(Vec<u8>, usize)>,
    others: Option<usize>,
}

impl Hosts {
    /// Indexes the patterns of groups. Of two equal patterns the first wins.
    pub(super) fn new<'a>(groups: impl Iterator<Item = &'a [String]>) -> Hosts {
        let mut hosts = Hosts::default();
        for (index, patterns) in groups.enumerate() {
            if patterns.is_empty() {
                hosts.others.get_or_insert(index);
            }
            for pattern in patterns {
                let pattern = pattern.to_ascii_lowercase().into_bytes();
                match pattern.strip_prefix(b"*") {
                    Some(suffix) => hosts.wildcards.push((suffix.to_vec(), index)),
                    None => {
                        hosts.exact.entry(pattern).or_insert(index);
                    }
                }
            }
        }
        hosts.wildcards.sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
        hosts
    }

    /// The group for a Host field value: any case, with or without a port and a final dot.
    pub(super) fn find(&self, host: &[u8]) -> Option<usize> {
        if self.exact.is_empty() && self.wildcards.is_empty() {
            return self.others;
        }
        let lower: SmallVec<[u8; 128]> = host.iter().map(u8::to_ascii_lowercase).collect();
        let name = without_port(&lower);
        let name = name.strip_suffix(b".").unwrap_or(name);
        self.named(&lower).or_else(|| self.named(name)).or(self.others)
    }

    fn named(&self, name: &[u8]) -> Option<usize> {
        self.exact.get(name).copied().or_else(|| {
            self.wildcards
                .iter()
                .find(|(suffix, _)| name.len() > suffix.len() && name.ends_with(suffix))
                .map(|(_, index)| *index)
        })
    }
}

/// `[::1]:80` is `::1`, `shop.example:80` is `shop.example`.
fn without_port(host: &[u8]) -> &[u8] {
    if let Some(rest) = host.strip_prefix(b"[") {
        return rest.split(|byte| *byte == b']').next().unwrap_or(rest);
    }
    match host.iter().position(|byte| *byte == b':') {
        Some(colon) if !host[colon + 1..].contains(&b':') => &host[..colon],
        _ => host,
    }
}
