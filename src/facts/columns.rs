//! Conversion between the fields of facts and the columns in which they are kept and exchanged.
//! [`Value`] is the content of a column, [`Column`] is a type of field, and [`Table`] a kind of
//! fact. The macros `tables!` and `all_facts!` make the structs of all kinds.

use super::{GapReason, PauseEvent};
use crate::policy::Version;
use crate::policy::model::Audience;
use crate::publications::Published;
use crate::time::Timestamp;
use ipnet::IpNet;
use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Clocks of one machine, or of several that exchange facts, may differ by this many seconds.
pub const TOLERANCE: i64 = 5;

/// Returns `moment`, or `now` if `moment` lies ahead by more than `TOLERANCE`: then it was recorded
/// by a clock that was set back since.
pub fn taken_as_past(moment: Timestamp, now: Timestamp) -> Timestamp {
    if moment.0 > now.0.saturating_add(TOLERANCE) {
        now
    } else {
        moment
    }
}

/// The content of a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
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

/// A type of field.
pub trait Column: Sized {
    /// The type in the table's definition, in the words of SQLite.
    const TYPE: &'static str = "INTEGER NOT NULL";
    /// Whether it is a moment.
    const IS_TIME: bool = false;

    /// The field as the content of a column.
    fn to_value(&self) -> Value;

    /// The field of a column; `None` if its content is of another type or cannot be read.
    fn from_value(value: Value) -> Option<Self>;

    /// Takes a moment that lies ahead for `now`: see `taken_as_past`. Other fields stay.
    fn clamp_to(&mut self, _now: Timestamp) {}
}

/// Numbers. One that is too large for a column becomes the largest.
macro_rules! numbers {
    ($($number:ty),+) => {
        $(
            impl Column for $number {
                fn to_value(&self) -> Value {
                    Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
                }

                fn from_value(value: Value) -> Option<$number> {
                    match value {
                        Value::Integer(number) => number.try_into().ok(),
                        _ => None,
                    }
                }
            }
        )+
    };
}

numbers!(u32, u64);

impl Column for bool {
    fn to_value(&self) -> Value {
        Value::Integer((*self).into())
    }

    fn from_value(value: Value) -> Option<bool> {
        u32::from_value(value).map(|number| number != 0)
    }
}

impl Column for Timestamp {
    const IS_TIME: bool = true;

    fn to_value(&self) -> Value {
        Value::Time(*self)
    }

    fn from_value(value: Value) -> Option<Timestamp> {
        match value {
            Value::Time(moment) => Some(moment),
            Value::Integer(seconds) => Some(Timestamp(seconds)),
            _ => None,
        }
    }

    fn clamp_to(&mut self, now: Timestamp) {
        *self = taken_as_past(*self, now);
    }
}

/// In whole seconds.
impl Column for Duration {
    fn to_value(&self) -> Value {
        self.as_secs().to_value()
    }

    fn from_value(value: Value) -> Option<Duration> {
        u64::from_value(value).map(Duration::from_secs)
    }
}

impl Column for Arc<[u8]> {
    const TYPE: &'static str = "BLOB NOT NULL";

    fn to_value(&self) -> Value {
        Value::Bytes(self.clone())
    }

    fn from_value(value: Value) -> Option<Arc<[u8]>> {
        match value {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl<C: Column> Column for Option<C> {
    const TYPE: &'static str = "INTEGER";
    const IS_TIME: bool = C::IS_TIME;

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, C::to_value)
    }

    fn from_value(value: Value) -> Option<Option<C>> {
        match value {
            Value::Null => Some(None),
            value => C::from_value(value).map(Some),
        }
    }

    fn clamp_to(&mut self, now: Timestamp) {
        if let Some(value) = self {
            value.clamp_to(now);
        }
    }
}

/// Makes columns of types whose text is the one that they are shown and parsed with.
macro_rules! texts {
    ($($field:ty),+) => {
        $(
            impl Column for $field {
                const TYPE: &'static str = "TEXT NOT NULL";

                fn to_value(&self) -> Value {
                    Value::Text(self.to_string())
                }

                fn from_value(value: Value) -> Option<$field> {
                    match value {
                        Value::Text(text) => text.parse().ok(),
                        _ => None,
                    }
                }
            }
        )+
    };
}

texts!(
    String, IpAddr, IpNet, Version, Published, Audience, PauseEvent, GapReason
);

/// `503`, `forgotten`, `forgotten, 503`, or the id of a version.
impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Published::Version(version) => version.fmt(f),
            Published::Unavailable => f.write_str("503"),
            Published::Unknown => f.write_str("forgotten"),
            Published::UnknownOrUnavailable => f.write_str("forgotten, 503"),
        }
    }
}

/// An id that cannot be read stands for a version that is not known.
impl FromStr for Published {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Published, Infallible> {
        Ok(match text {
            "503" => Published::Unavailable,
            "forgotten, 503" => Published::UnknownOrUnavailable,
            id => id.parse().map_or(Published::Unknown, Published::Version),
        })
    }
}

/// When a fact is over, and may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// A later fact replaces it, or a removal.
    Never,
    /// At the moment of its column `until`, if that has one.
    Until,
    /// When nobody confirmed it for as long as a crawler may use a copy of robots.txt.
    Unconfirmed,
}

/// A column of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name.
    pub name: &'static str,
    /// Its type in the table's definition, in the words of SQLite.
    pub definition: &'static str,
    /// Whether it holds moments.
    pub is_time: bool,
}

impl ColumnInfo {
    /// The column of a field of type `C`.
    pub const fn of<C: Column>(name: &'static str) -> ColumnInfo {
        ColumnInfo {
            name,
            definition: C::TYPE,
            is_time: C::IS_TIME,
        }
    }
}

/// A kind of fact as a table.
#[derive(Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: &'static str,
    /// The columns of the key.
    pub key: &'static [ColumnInfo],
    /// The other columns.
    pub values: &'static [ColumnInfo],
    /// When its facts are over.
    pub expiry: Expiry,
    /// Whether clients choose how many of its facts come and go.
    pub is_of_clients: bool,
}

/// A kind of fact. Of two facts with one key the later one counts.
pub trait Table: Sized {
    /// Its table.
    const INFO: TableInfo;

    /// The columns of the key.
    fn key(&self) -> Vec<Value>;

    /// The other columns.
    fn values(&self) -> Vec<Value>;

    /// Reads the columns in the order of the key and then the others. Moments that lie ahead are
    /// taken for `now`, but for those that are kept as written. `None` if a column cannot be read.
    fn read(columns: &mut dyn Iterator<Item = Value>, now: Timestamp) -> Option<Self>;
}

/// The next column as a field whose moments do not lie ahead of `now`.
pub fn past<C: Column>(columns: &mut dyn Iterator<Item = Value>, now: Timestamp) -> Option<C> {
    let mut field: C = as_written(columns)?;
    field.clamp_to(now);
    Some(field)
}

/// The next column as a field. Moments stay as they were written.
pub fn as_written<C: Column>(columns: &mut dyn Iterator<Item = Value>) -> Option<C> {
    C::from_value(columns.next()?)
}

/// Makes a struct and a table of each kind of fact.
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $fact:ident, $table:ident, $expiry:ident, of clients: $is_of_clients:literal {
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
                $fact, $table, $expiry, of clients: $is_of_clients {
                    key { $( $key: $key_type, )+ }
                    values { $( $value: $value_type $(as $mode)?, )* }
                }
            }
        )+
    };
}

/// Makes the table of a kind of fact whose struct stands elsewhere.
macro_rules! table {
    (
        $fact:ident, $table:ident, $expiry:ident, of clients: $is_of_clients:literal {
            key { $( $key:ident: $key_type:ty, )+ }
            values { $( $value:ident: $value_type:ty $(as $mode:ident)?, )* }
        }
    ) => {
            impl Table for $fact {
                const INFO: TableInfo = TableInfo {
                    name: stringify!($table),
                    key: &[$( ColumnInfo::of::<$key_type>(stringify!($key)), )+],
                    values: &[$( ColumnInfo::of::<$value_type>(stringify!($value)), )*],
                    expiry: Expiry::$expiry,
                    is_of_clients: $is_of_clients,
                };

                fn key(&self) -> Vec<Value> {
                    vec![$( self.$key.to_value(), )+]
                }

                fn values(&self) -> Vec<Value> {
                    vec![$( self.$value.to_value(), )*]
                }

                fn read(
                    columns: &mut dyn Iterator<Item = Value>,
                    now: Timestamp,
                ) -> Option<$fact> {
                    Some($fact {
                        $( $key: past(columns, now)?, )+
                        $( $value: field!(columns, now $(, $mode)?)?, )*
                    })
                }
            }
    };
}

/// A field of the next column, in the mode of its declaration.
macro_rules! field {
    ($columns:ident, $now:ident) => {
        past($columns, $now)
    };
    ($columns:ident, $now:ident, written) => {
        as_written($columns)
    };
}

/// Makes the enum `AnyFact` of all kinds of facts, and `StoredFacts` with a list of each.
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
            pub fn table(&self) -> &'static TableInfo {
                match self {
                    $( AnyFact::$fact(_) => &<$fact as Table>::INFO, )+
                }
            }

            /// The columns of its key.
            pub fn key(&self) -> Vec<Value> {
                match self {
                    $( AnyFact::$fact(fact) => fact.key(), )+
                }
            }

            /// Its other columns.
            pub fn values(&self) -> Vec<Value> {
                match self {
                    $( AnyFact::$fact(fact) => fact.values(), )+
                }
            }

            /// Reads a fact of this table. Moments stay as they are. `None` if a column cannot be
            /// read.
            pub fn read(
                table: &TableInfo,
                columns: &mut dyn Iterator<Item = Value>,
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
            pub fn read<S: Source>(source: &S) -> Result<StoredFacts, S::Error> {
                Ok(StoredFacts { $( $list: source.read()?, )+ })
            }
        }

        /// All tables.
        pub const TABLES: &[&TableInfo] = &[$( &<$fact as Table>::INFO, )+];
    };
}

pub(super) use {all_facts, field, table, tables};

/// Where facts were kept.
pub trait Source {
    /// Why they cannot be read.
    type Error;

    /// All facts of a kind that were not removed, with the times of their last changes.
    ///
    /// # Errors
    /// They cannot be read.
    fn read<T: Table>(&self) -> Result<Vec<(Timestamp, T)>, Self::Error>;
}
