//! The tables of what was published: [`Publication`] and [`Tenure`].

use super::columns::{Column, ColumnInfo, Expiry, Table, TableInfo, Value, as_written, past};
use crate::policy::decode::parse_host;
use crate::publications::{Change, Publication, Published, Span, Tenure};
use crate::time::Timestamp;

const NUMBER: ColumnInfo = ColumnInfo::of::<u64>("number");
const SITE: ColumnInfo = ColumnInfo::of::<String>("site");
const SINCE: ColumnInfo = ColumnInfo::of::<Timestamp>("since");
const UNTIL: ColumnInfo = ColumnInfo::of::<Option<Timestamp>>("until");
const ENDED_BY: ColumnInfo = ColumnInfo::of::<Option<u64>>("ended_by");

/// The site, and the number of the change that began it.
impl Table for Publication {
    const INFO: TableInfo = TableInfo {
        name: "publications",
        key: &[SITE, NUMBER],
        values: &[
            ColumnInfo::of::<Published>("answered"),
            ColumnInfo::of::<String>("identities"),
            ColumnInfo::of::<bool>("tells"),
            SINCE,
            UNTIL,
            ENDED_BY,
            ColumnInfo::of::<Option<Timestamp>>("unreported_until"),
        ],
        expiry: Expiry::Until,
        is_of_clients: false,
    };

    fn key(&self) -> Vec<Value> {
        vec![self.site.to_value(), self.span.since.number.to_value()]
    }

    fn values(&self) -> Vec<Value> {
        let mut values = vec![
            self.published.to_value(),
            Value::Text(format!("{:016x}", self.identities)),
            self.tells.to_value(),
        ];
        values.extend(span_values(self.span));
        values.push(self.unreported_until.to_value());
        values
    }

    fn read(columns: &mut dyn Iterator<Item = Value>, now: Timestamp) -> Option<Publication> {
        let site = as_written(columns)?;
        let number = as_written(columns)?;
        let published = as_written(columns)?;
        let identities: String = as_written(columns)?;
        Some(Publication {
            site,
            published,
            identities: u64::from_str_radix(&identities, 16).ok()?,
            tells: as_written(columns)?,
            span: read_span(number, columns, now)?,
            unreported_until: past(columns, now)?,
        })
    }
}

/// The host or host pattern, empty for every other host, and the number of the change that began
/// it.
impl Table for Tenure {
    const INFO: TableInfo = TableInfo {
        name: "host_tenures",
        key: &[ColumnInfo::of::<String>("hosts"), NUMBER],
        values: &[SITE, SINCE, UNTIL, ENDED_BY],
        expiry: Expiry::Until,
        is_of_clients: false,
    };

    fn key(&self) -> Vec<Value> {
        let hosts = self.pattern.as_ref().map(ToString::to_string);
        vec![
            Value::Text(hosts.unwrap_or_default()),
            self.span.since.number.to_value(),
        ]
    }

    fn values(&self) -> Vec<Value> {
        let mut values = vec![self.site.to_value()];
        values.extend(span_values(self.span));
        values
    }

    fn read(columns: &mut dyn Iterator<Item = Value>, now: Timestamp) -> Option<Tenure> {
        let hosts: String = as_written(columns)?;
        let number = as_written(columns)?;
        let pattern = match hosts.as_str() {
            "" => None,
            hosts => Some(parse_host(hosts).ok()?),
        };
        Some(Tenure {
            pattern,
            site: as_written(columns)?,
            span: read_span(number, columns, now)?,
        })
    }
}

/// When it began, when it ended, and the number of the change that ended it.
fn span_values(span: Span) -> [Value; 3] {
    [
        span.since.at.to_value(),
        span.until.map(|until| until.at).to_value(),
        span.until.map(|until| until.number).to_value(),
    ]
}

fn read_span(
    number: u64,
    columns: &mut dyn Iterator<Item = Value>,
    now: Timestamp,
) -> Option<Span> {
    let since = past(columns, now)?;
    let until: Option<Timestamp> = past(columns, now)?;
    let ended_by: Option<u64> = as_written(columns)?;
    Some(Span {
        since: Change { number, at: since },
        until: until
            .zip(ended_by)
            .map(|(at, number)| Change { number, at }),
    })
}
