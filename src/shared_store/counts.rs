//! The request counts of the instances, for the history: one hash for each period, with a field for each instance
//! ([`CountsOfPeriod`]). Nothing is judged by them.

use super::connection::SharedStore;
use crate::exchange::StoreError;
use redis::FromRedisValue;
use std::collections::HashMap;

/// Instances that have a field in the hash of a period. An instance that finds no room is missing in the sums.
const MOST_INSTANCES: usize = 256;

/// What an instance counted in a period.
pub struct CountsOfPeriod {
    /// The name of the period.
    pub period: String,
    /// What it counted.
    pub value: String,
    /// For how many seconds from now the counts of the period are kept.
    pub kept: u64,
}

/// Questions fail as [`StoreError`] says.
#[allow(clippy::missing_errors_doc)]
impl SharedStore {
    /// Whether an instance has told what it counted in a period.
    pub fn has_counts(&mut self, period: &str, instance: &str) -> Result<bool, StoreError> {
        let key = self.counts_key(period);
        self.ask(|connected| redis::cmd("HEXISTS").arg(&key).arg(instance).query(&mut connected.connection))
    }

    /// Tells what an instance counted, in place of what it told of these periods before.
    pub fn put_counts(&mut self, instance: &str, counts: &[CountsOfPeriod]) -> Result<(), StoreError> {
        let keys: Vec<String> = counts.iter().map(|counts| self.counts_key(&counts.period)).collect();
        self.ask(|connected| {
            let mut look = redis::pipe();
            for key in &keys {
                look.cmd("HEXISTS").arg(key).arg(instance).cmd("HLEN").arg(key);
            }
            let found = connected.run(&look)?;
            let found = found.into_iter().map(usize::from_redis_value).collect::<Result<Vec<usize>, _>>()?;
            let mut write = redis::pipe();
            for ((key, counts), found) in keys.iter().zip(counts).zip(found.chunks(2)) {
                if matches!(found, [0, others] if *others >= MOST_INSTANCES) {
                    continue;
                }
                write.cmd("HSET").arg(key).arg(instance).arg(&counts.value);
                write.cmd("EXPIRE").arg(key).arg(counts.kept);
            }
            connected.run(&write)?;
            Ok(())
        })
    }

    /// What all instances counted in some periods, by their ids.
    pub fn counts(&mut self, periods: &[String]) -> Result<Vec<HashMap<String, String>>, StoreError> {
        let keys: Vec<String> = periods.iter().map(|period| self.counts_key(period)).collect();
        self.ask(|connected| {
            let mut read = redis::pipe();
            keys.iter().for_each(|key| {
                read.cmd("HGETALL").arg(key);
            });
            let answers = connected.run(&read)?;
            Ok(answers.into_iter().map(HashMap::from_redis_value).collect::<Result<_, _>>()?)
        })
    }

    fn counts_key(&self, period: &str) -> String {
        self.key(&format!("counts:{period}"))
    }
}
