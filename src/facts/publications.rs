//! Implements [`FactTable`] (the conversion to rows of the state database) for two kinds of facts.
//! A [`Publication`] is what a site published, and when. A [`HostTenure`] is which hosts a site
//! had, and when. Both structs have nested fields, which the macro for the other kinds cannot
//! handle.

use super::columns::{
    ColumnSchema, ColumnType, ColumnValue, Expiry, FactTable, SqlTableSchema, read_as_written,
    read_clamped_to_now,
};
use crate::policy::decode::parse_host;
use crate::publications::{ChangePoint, ChangeSpan, HostTenure, Publication, PublishedRobots};
use crate::time::Timestamp;

const NUMBER: ColumnSchema = ColumnSchema::new::<u64>("number");
const SITE: ColumnSchema = ColumnSchema::new::<String>("site");
const SINCE: ColumnSchema = ColumnSchema::new::<Timestamp>("since");
const UNTIL: ColumnSchema = ColumnSchema::new::<Option<Timestamp>>("until");
const ENDED_BY: ColumnSchema = ColumnSchema::new::<Option<u64>>("ended_by");

/// The site, and the number of the change that began it.
impl FactTable for Publication {
    const SCHEMA: SqlTableSchema = SqlTableSchema {
        name: "publications",
        key: &[SITE, NUMBER],
        values: &[
            ColumnSchema::new::<PublishedRobots>("answered"),
            ColumnSchema::new::<String>("identities"),
            ColumnSchema::new::<bool>("tells"),
            SINCE,
            UNTIL,
            ENDED_BY,
            ColumnSchema::new::<Option<Timestamp>>("unreported_until"),
        ],
        expiry: Expiry::Until,
    };

    fn key(&self) -> Vec<ColumnValue> {
        vec![self.site.to_value(), self.span.since.number.to_value()]
    }

    fn values(&self) -> Vec<ColumnValue> {
        let mut values = vec![
            self.published.to_value(),
            ColumnValue::Text(format!("{:016x}", self.identities)),
            self.has_page_tags.to_value(),
        ];
        values.extend(span_values(self.span));
        values.push(self.unreported_until.to_value());
        values
    }

    fn read(columns: &mut dyn Iterator<Item = ColumnValue>, now: Timestamp) -> Option<Publication> {
        let site = read_as_written(columns)?;
        let number = read_as_written(columns)?;
        let published = read_as_written(columns)?;
        let identities: String = read_as_written(columns)?;
        Some(Publication {
            site,
            published,
            identities: u64::from_str_radix(&identities, 16).ok()?,
            has_page_tags: read_as_written(columns)?,
            span: read_span(number, columns, now)?,
            unreported_until: read_clamped_to_now(columns, now)?,
        })
    }
}

/// The host or host pattern, empty for every other host, and the number of the change that began
/// it.
impl FactTable for HostTenure {
    const SCHEMA: SqlTableSchema = SqlTableSchema {
        name: "host_tenures",
        key: &[ColumnSchema::new::<String>("hosts"), NUMBER],
        values: &[SITE, SINCE, UNTIL, ENDED_BY],
        expiry: Expiry::Until,
    };

    fn key(&self) -> Vec<ColumnValue> {
        let hosts = self.pattern.as_ref().map(ToString::to_string);
        vec![
            ColumnValue::Text(hosts.unwrap_or_default()),
            self.span.since.number.to_value(),
        ]
    }

    fn values(&self) -> Vec<ColumnValue> {
        let mut values = vec![self.site.to_value()];
        values.extend(span_values(self.span));
        values
    }

    fn read(columns: &mut dyn Iterator<Item = ColumnValue>, now: Timestamp) -> Option<HostTenure> {
        let hosts: String = read_as_written(columns)?;
        let number = read_as_written(columns)?;
        let pattern = match hosts.as_str() {
            "" => None,
            hosts => Some(parse_host(hosts).ok()?),
        };
        Some(HostTenure {
            pattern,
            site: read_as_written(columns)?,
            span: read_span(number, columns, now)?,
        })
    }
}

/// The columns of a span: when it began, when it ended, and the number of the change that ended it.
fn span_values(span: ChangeSpan) -> [ColumnValue; 3] {
    [
        span.since.at.to_value(),
        span.until.map(|until| until.at).to_value(),
        span.until.map(|until| until.number).to_value(),
    ]
}

fn read_span(
    number: u64,
    columns: &mut dyn Iterator<Item = ColumnValue>,
    now: Timestamp,
) -> Option<ChangeSpan> {
    let since = read_clamped_to_now(columns, now)?;
    let until: Option<Timestamp> = read_clamped_to_now(columns, now)?;
    let ended_by: Option<u64> = read_as_written(columns)?;
    Some(ChangeSpan {
        since: ChangePoint { number, at: since },
        until: until
            .zip(ended_by)
            .map(|(at, number)| ChangePoint { number, at }),
    })
}
