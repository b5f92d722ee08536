//! The dashboard's page of health. First it shows the problems that need attention. Then it shows
//! the state of policies, origins, instances and certificates, and of the published lists (of
//! networks or keys) by which crawlers are verified.

use super::layout::PageLayout;
use super::{Dashboard, PageResult};
use crate::admin::query::QueryParameters;
use crate::admin::status::InstanceStatus;
use crate::identity::{ListFailure, ListId, PublishedLists};
use crate::ledger::{EVERY_SITE, ListHealth};
use crate::peers::MemberState;
use askama::Template;
use std::collections::BTreeMap;

#[derive(Template)]
#[template(path = "health.html")]
struct HealthPage<'a> {
    layout: PageLayout,
    status: InstanceStatus,
    lists: &'a PublishedLists,
    /// Whether this crawlgate fetches the lists.
    is_fetching: bool,
    failures: BTreeMap<ListId, ListFailure>,
    proofs: Vec<ListHealth>,
}

impl Dashboard {
    pub(super) fn health_page(&self, query: &str) -> PageResult {
        QueryParameters::parse(query, &[])?;
        let mut status = self.operations.status();
        if let Some(store) = &mut status.store {
            store
                .exchange
                .members
                .sort_by_cached_key(|found| (found.member.host.clone(), found.member.id.clone()));
        }
        let lists = &self.operations.instance.proofs.lists;
        let page = HealthPage {
            layout: PageLayout::new("Health", "/health", status.problems.len(), String::new()),
            status,
            failures: lists.failures(),
            lists,
            is_fetching: self.operations.sources.lists.is_some(),
            proofs: self.operations.upkeep.list_health(),
        };
        Ok(page.render()?)
    }
}
