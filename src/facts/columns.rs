//! Converts facts (what crawlgate remembers, such as which robots.txt a crawler was served) to rows
//! of database tables, and back. Each field of a fact becomes the content of a column
//! ([`ColumnValue`]). Types of fields implement [`ColumnType`], and kinds of facts implement
//! [`FactTable`]. The macros `tables!` and `all_facts!` declare all kinds of facts.

use super::{GapReason, PauseEvent};
use crate::policy::RobotsVersionId;
use crate::policy::model::PauseAudience;
use crate::publications::PublishedRobots;
use crate::time::Timestamp;
use ColumnValue::*;
use PublishedRobots::*;
use ipnet::IpNet;
use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Clocks may be off by this many seconds, on one machine over time and between instances.
pub const CLOCK_TOLERANCE: i64 = 5;

/// Returns `moment`, or `now` if `moment` is more than `CLOCK_TOLERANCE` in the future. Such a
/// moment was recorded before the clock was set back.
pub fn clamp_to_now(moment: Timestamp, now: Timestamp) -> Timestamp {
    if moment.0 > now.0.saturating_add(CLOCK_TOLERANCE) {
        now
    } else {
        moment
    }
}

/// The content of a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnValue {
    /// Nothing.
    Null,
    /// A number.
    Integer(i64),
    /// A moment.
    Time(Timestamp),
    /// A text.
    Text(String),
    /// The content of a file.
    Bytes(Arc<[u8]>),
}

/// A type that a field of a fact may have.
pub trait ColumnType: Sized {
    /// The SQLite type and constraint of the column.
    const SQL_TYPE: &'static str = "INTEGER NOT NULL";
    /// Whether the column has moments.
    const IS_TIME: bool = false;

    /// Converts the field into the content of a column.
    fn to_value(&self) -> ColumnValue;

    /// Reads the field from the content of a column. `None` if the content has another type or
    /// cannot be parsed.
    fn from_value(value: ColumnValue) -> Option<Self>;

    /// Applies `clamp_to_now` to moments. Does nothing to other fields.
    fn clamp_to(&mut self, _now: Timestamp) {}
}

/// Numbers. One that is too large for a column becomes the largest.
macro_rules! numbers {
    ($($number:ty),+) => {
        $(
            impl ColumnType for $number {
                fn to_value(&self) -> ColumnValue {
                    Integer(i64::try_from(*self).unwrap_or(i64::MAX))
                }

                fn from_value(value: ColumnValue) -> Option<$number> {
                    match value {
                        Integer(number) => number.try_into().ok(),
                        _ => None,
                    }
                }
            }
        )+
    };
}

numbers!(u32, u64);

impl ColumnType for bool {
    fn to_value(&self) -> ColumnValue {
        Integer((*self).into())
    }

    fn from_value(value: ColumnValue) -> Option<bool> {
        u32::from_value(value).map(|number| number != 0)
    }
}

impl ColumnType for Timestamp {
    const IS_TIME: bool = true;

    fn to_value(&self) -> ColumnValue {
        Time(*self)
    }

    fn from_value(value: ColumnValue) -> Option<Timestamp> {
        match value {
            Time(moment) => Some(moment),
            Integer(seconds) => Some(Timestamp(seconds)),
            _ => None,
        }
    }

    fn clamp_to(&mut self, now: Timestamp) {
        *self = clamp_to_now(*self, now);
    }
}

/// In whole seconds.
impl ColumnType for Duration {
    fn to_value(&self) -> ColumnValue {
        self.as_secs().to_value()
    }

    fn from_value(value: ColumnValue) -> Option<Duration> {
        u64::from_value(value).map(Duration::from_secs)
    }
}

impl ColumnType for Arc<[u8]> {
    const SQL_TYPE: &'static str = "BLOB NOT NULL";

    fn to_value(&self) -> ColumnValue {
        Bytes(self.clone())
    }

    fn from_value(value: ColumnValue) -> Option<Arc<[u8]>> {
        match value {
            Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl<C: ColumnType> ColumnType for Option<C> {
    const SQL_TYPE: &'static str = "INTEGER";
    const IS_TIME: bool = C::IS_TIME;

    fn to_value(&self) -> ColumnValue {
        self.as_ref().map_or(Null, C::to_value)
    }

    fn from_value(value: ColumnValue) -> Option<Option<C>> {
        match value {
            Null => Some(None),
            value => C::from_value(value).map(Some),
        }
    }

    fn clamp_to(&mut self, now: Timestamp) {
        if let Some(value) = self {
            value.clamp_to(now);
        }
    }
}

/// Stores types as text, by their `Display` and `FromStr`.
macro_rules! texts {
    ($($field:ty),+) => {
        $(
            impl ColumnType for $field {
                const SQL_TYPE: &'static str = "TEXT NOT NULL";

                fn to_value(&self) -> ColumnValue {
                    Text(self.to_string())
                }

                fn from_value(value: ColumnValue) -> Option<$field> {
                    match value {
                        Text(text) => text.parse().ok(),
                        _ => None,
                    }
                }
            }
        )+
    };
}

texts!(
    String,
    IpAddr,
    IpNet,
    RobotsVersionId,
    PublishedRobots,
    PauseAudience,
    PauseEvent,
    GapReason
);

/// `503`, `forgotten`, `forgotten, 503`, or the id of a version.
impl fmt::Display for PublishedRobots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version(version) => version.fmt(f),
            Unavailable => f.write_str("503"),
            Unknown => f.write_str("forgotten"),
            UnknownOrUnavailable => f.write_str("forgotten, 503"),
        }
    }
}

/// An id that cannot be parsed becomes `Published::Unknown`.
impl FromStr for PublishedRobots {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<PublishedRobots, Infallible> {
        Ok(match text {
            "503" => Unavailable,
            "forgotten, 503" => UnknownOrUnavailable,
            id => id.parse().map_or(Unknown, Version),
        })
    }
}

/// When a fact may be deleted.
#[derive(PartialEq, Eq)]
pub enum Expiry {
    /// Only when a later fact or a removal replaces it.
    Never,
    /// At the moment in its column `until`, if there is one.
    Until,
    /// When it was not set again for as long as a crawler may use a cached robots.txt.
    Unconfirmed,
}

/// A column of a table.
#[derive(PartialEq, Eq)]
pub struct ColumnSchema {
    /// Its name.
    pub name: &'static str,
    /// Its SQLite type and constraint.
    pub sql_type: &'static str,
    /// Whether it has moments.
    pub is_time: bool,
}

impl ColumnSchema {
    /// The column of a field of type `C`.
    pub const fn new<C: ColumnType>(name: &'static str) -> ColumnSchema {
        ColumnSchema {
            name,
            sql_type: C::SQL_TYPE,
            is_time: C::IS_TIME,
        }
    }
}

/// The table of a kind of fact.
#[derive(PartialEq, Eq)]
pub struct SqlTableSchema {
    /// Its name.
    pub name: &'static str,
    /// The columns of the key.
    pub key: &'static [ColumnSchema],
    /// The other columns.
    pub values: &'static [ColumnSchema],
    /// When its facts may be deleted.
    pub expiry: Expiry,
}

/// A kind of fact. Of two facts with one key the later one counts.
pub trait FactTable: Sized {
    /// Its table.
    const SCHEMA: SqlTableSchema;

    /// The columns of the key.
    fn key(&self) -> Vec<ColumnValue>;

    /// The other columns.
    fn values(&self) -> Vec<ColumnValue>;

    /// Reads the columns of the key and then the others. Moments in the future become `now`, except
    /// in fields declared `as written`. `None` if a column cannot be read.
    fn read(columns: &mut dyn Iterator<Item = ColumnValue>, now: Timestamp) -> Option<Self>;
}

/// Reads the next column, with moments in the future clamped to `now`.
pub fn read_clamped_to_now<C: ColumnType>(
    columns: &mut dyn Iterator<Item = ColumnValue>,
    now: Timestamp,
) -> Option<C> {
    let mut field: C = read_as_written(columns)?;
    field.clamp_to(now);
    Some(field)
}

/// Reads the next column. Moments stay as they were written.
pub fn read_as_written<C: ColumnType>(columns: &mut dyn Iterator<Item = ColumnValue>) -> Option<C> {
    C::from_value(columns.next()?)
}

/// Declares the struct of each kind of fact, and implements `FactTable` for it.
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $fact:ident, $table:ident, $expiry:ident {
            key { $( $(#[$key_doc:meta])* $key:ident: $key_type:ty, )+ }
            values { $( $(#[$value_doc:meta])* $value:ident: $value_type:ty $(as $mode:ident)?, )* }
        }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $fact {
                $( $(#[$key_doc])* pub $key: $key_type, )+
                $( $(#[$value_doc])* pub $value: $value_type, )*
            }

            table! {
                $fact, $table, $expiry {
                    key { $( $key: $key_type, )+ }
                    values { $( $value: $value_type $(as $mode)?, )* }
                }
            }
        )+
    };
}

/// Implements `FactTable` for a struct that is declared elsewhere.
macro_rules! table {
    (
        $fact:ident, $table:ident, $expiry:ident {
            key { $( $key:ident: $key_type:ty, )+ }
            values { $( $value:ident: $value_type:ty $(as $mode:ident)?, )* }
        }
    ) => {
            impl FactTable for $fact {
                const SCHEMA: SqlTableSchema = SqlTableSchema {
                    name: stringify!($table),
                    key: &[$( ColumnSchema::new::<$key_type>(stringify!($key)), )+],
                    values: &[$( ColumnSchema::new::<$value_type>(stringify!($value)), )*],
                    expiry: Expiry::$expiry,
                };

                fn key(&self) -> Vec<ColumnValue> {
                    vec![$( self.$key.to_value(), )+]
                }

                fn values(&self) -> Vec<ColumnValue> {
                    vec![$( self.$value.to_value(), )*]
                }

                fn read(
                    columns: &mut dyn Iterator<Item = ColumnValue>,
                    now: Timestamp,
                ) -> Option<$fact> {
                    Some($fact {
                        $( $key: read_clamped_to_now(columns, now)?, )+
                        $( $value: field!(columns, now $(, $mode)?)?, )*
                    })
                }
            }
    };
}

/// Reads the next column as a field, clamped unless the field is declared `as written`.
macro_rules! field {
    ($columns:ident, $now:ident) => {
        read_clamped_to_now($columns, $now)
    };
    ($columns:ident, $now:ident, written) => {
        read_as_written($columns)
    };
}

/// Declares the enum `AnyFact` of all kinds of facts, and `StoredFacts` with a list of each kind.
macro_rules! all_facts {
    ($( $fact:ident, $list:ident; )+) => {
        /// A fact of any kind.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum AnyFact {
            $( #[doc = concat!("Of the table `", stringify!($list), "`.")] $fact($fact), )+
        }

        $(
            impl From<$fact> for AnyFact {
                fn from(fact: $fact) -> AnyFact {
                    AnyFact::$fact(fact)
                }
            }
        )+

        impl AnyFact {
            /// Its table.
            pub fn table(&self) -> &'static SqlTableSchema {
                match self {
                    $( AnyFact::$fact(_) => &<$fact as FactTable>::SCHEMA, )+
                }
            }

            /// The columns of its key.
            pub fn key(&self) -> Vec<ColumnValue> {
                match self {
                    $( AnyFact::$fact(fact) => fact.key(), )+
                }
            }

            /// Its other columns.
            pub fn values(&self) -> Vec<ColumnValue> {
                match self {
                    $( AnyFact::$fact(fact) => fact.values(), )+
                }
            }

            /// Reads a fact of this table. Moments stay as they are. `None` if a column cannot be
            /// read.
            pub fn read(
                table: &SqlTableSchema,
                columns: &mut dyn Iterator<Item = ColumnValue>,
            ) -> Option<AnyFact> {
                let now = Timestamp(i64::MAX);
                match table.name {
                    $( stringify!($list) => $fact::read(columns, now).map(AnyFact::$fact), )+
                    _ => None,
                }
            }
        }

        /// Facts by their kind, each with the time of its last change.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct StoredFacts {
            $( #[doc = concat!("The table `", stringify!($list), "`.")]
               pub $list: Vec<(Timestamp, $fact)>, )+
        }

        impl StoredFacts {
            /// Reads every table.
            ///
            /// # Errors
            /// Those of the source.
            pub fn read<S: FactSource>(source: &S) -> Result<StoredFacts, S::Error> {
                Ok(StoredFacts { $( $list: source.read()?, )+ })
            }
        }

        /// All tables.
        pub const TABLES: &[&SqlTableSchema] = &[$( &<$fact as FactTable>::SCHEMA, )+];
    };
}

pub(super) use {all_facts, field, table, tables};

/// Where stored facts are read from.
pub trait FactSource {
    /// Why they cannot be read.
    type Error;

    /// Reads all facts of a kind that were not removed, each with the time of its last change.
    ///
    /// # Errors
    /// They cannot be read.
    fn read<T: FactTable>(&self) -> Result<Vec<(Timestamp, T)>, Self::Error>;
}
