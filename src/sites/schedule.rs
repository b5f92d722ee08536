//! What changes by the clock without an edit: a policy in force is compiled again for the moment, and follows itself as
//! a new version would.

use super::reload::Sites;
use crate::policy::compile_with_origin;
use crate::time::Timestamp;
use std::sync::Arc;

impl Sites {
    /// Puts every site that is due on its next stage; returns which these are. It is the policy in force that goes on,
    /// not the file: that may be refused, or changed a moment ago.
    pub fn keep_time(&mut self, now: Timestamp) -> Vec<String> {
        let mut switched = Vec::new();
        for name in self.due(now) {
            let Some(entry) = self.take_entry(&name) else { continue };
            let entry = match compile_with_origin(
                entry.site.policy.clone(),
                &entry.site.origin_known(),
                self.registry(),
                now,
            ) {
                Ok(site) => {
                    switched.push(name.clone());
                    self.succeed(Arc::new(site), now)
                }
                // It compiled at the end of its plan when it was loaded.
                Err(error) => {
                    tracing::error!(site = %name, %error, "the next stage of `retire` cannot be compiled: the site stays as it is");
                    entry
                }
            };
            self.put_entry(&name, entry);
        }
        if !switched.is_empty() {
            self.remember(now);
        }
        switched
    }
}
