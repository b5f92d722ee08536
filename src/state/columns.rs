//! Conversion between the fields of records and the columns of `state.db`. [`Column`] is a type of
//! column, and [`Record`] is the trait of a kind of record, with its table. The macro `records!`
//! makes the struct and the table of each kind.

use crate::time::Timestamp;
use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Result as SqlResult, Row};
use std::sync::Arc;

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

/// A moment that stays as it was written, such as the end of a pause, which lies ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsWritten(pub Timestamp);

/// A type of a column.
pub trait Column: FromSql + ToSql {
    /// The type in the table's definition, in the words of SQLite.
    const TYPE: &'static str = "INTEGER NOT NULL";

    /// The value to use when it is read at the moment `now`. Only moments change, those that lie
    /// ahead: see `taken_as_past`.
    fn read_at(self, _now: Timestamp) -> Self {
        self
    }
}

impl Column for bool {}

impl Column for u32 {}

impl Column for u64 {}

impl Column for String {
    const TYPE: &'static str = "TEXT NOT NULL";
}

impl Column for Arc<[u8]> {
    const TYPE: &'static str = "BLOB NOT NULL";
}

impl<C: Column> Column for Option<C> {
    const TYPE: &'static str = "INTEGER";

    fn read_at(self, now: Timestamp) -> Option<C> {
        self.map(|value| value.read_at(now))
    }
}

impl ToSql for Timestamp {
    fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for Timestamp {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Timestamp> {
        i64::column_result(value).map(Timestamp)
    }
}

impl Column for Timestamp {
    fn read_at(self, now: Timestamp) -> Timestamp {
        taken_as_past(self, now)
    }
}

impl ToSql for AsWritten {
    fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for AsWritten {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<AsWritten> {
        Timestamp::column_result(value).map(AsWritten)
    }
}

impl Column for AsWritten {}

/// A value as SQLite takes it. A number that is too large for it becomes the largest.
pub fn value(column: &impl Column) -> Value {
    match column.to_sql() {
        Ok(ToSqlOutput::Owned(value)) => value,
        Ok(ToSqlOutput::Borrowed(value)) => value.try_into().unwrap_or(Value::Null),
        _ => Value::Integer(i64::MAX),
    }
}

/// Writes the variants of an enum as words.
macro_rules! words {
    ($name:ident { $( $variant:ident = $word:literal ),+ }) => {
        impl Column for $name {
            const TYPE: &'static str = "TEXT NOT NULL";
        }

        impl ToSql for $name {
            fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
                Ok(match self { $( $name::$variant => $word, )+ }.into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<$name> {
                match value.as_str()? {
                    $( $word => Ok($name::$variant), )+
                    _ => Err(FromSqlError::InvalidType),
                }
            }
        }
    };
}
pub(super) use words;

/// A kind of fact: a table with a key, further columns, the time of the change and whether it is a
/// removal.
pub trait Record: Sized {
    /// The table.
    const TABLE: &'static str;
    /// The columns of the key, each with its type.
    const KEY: &'static [(&'static str, &'static str)];
    /// The other columns, each with its type.
    const VALUES: &'static [(&'static str, &'static str)];

    /// The values of the key's columns, and of the others.
    fn key_and_values(&self) -> (Vec<Value>, Vec<Value>);

    /// Reads the columns in the order of the key and then the others.
    fn read(row: &Row<'_>, now: Timestamp) -> SqlResult<Self>;
}

/// Makes a struct and a table of each kind of fact, the enum `AnyRecord`, and `StoredFacts` for
/// what was read.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $record:ident, $list:ident {
            key { $( $(#[$key_doc:meta])* $key:ident: $key_type:ty, )+ }
            values { $( $(#[$value_doc:meta])* $value:ident: $value_type:ty, )* }
        }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $record {
                $( $(#[$key_doc])* pub $key: $key_type, )+
                $( $(#[$value_doc])* pub $value: $value_type, )*
            }

            impl Record for $record {
                const TABLE: &'static str = stringify!($list);
                const KEY: &'static [(&'static str, &'static str)] =
                    &[$( (stringify!($key), <$key_type as Column>::TYPE), )+];
                const VALUES: &'static [(&'static str, &'static str)] =
                    &[$( (stringify!($value), <$value_type as Column>::TYPE), )*];

                fn key_and_values(&self) -> (Vec<Value>, Vec<Value>) {
                    (vec![$( value(&self.$key), )+], vec![$( value(&self.$value), )*])
                }

                fn read(row: &Row<'_>, now: Timestamp) -> SqlResult<$record> {
                    let mut columns = 0..;
                    let mut next = || columns.next().unwrap_or_default();
                    Ok($record {
                        $( $key: Column::read_at(row.get(next())?, now), )+
                        $( $value: Column::read_at(row.get(next())?, now), )*
                    })
                }
            }

            impl From<$record> for AnyRecord {
                fn from(record: $record) -> AnyRecord {
                    AnyRecord::$record(record)
                }
            }
        )+

        /// A record of any table.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum AnyRecord {
            $( #[doc = concat!("Of the table `", stringify!($list), "`.")] $record($record), )+
        }

        impl AnyRecord {
            /// Its table.
            pub(super) fn table(&self) -> &'static str {
                match self {
                    $( AnyRecord::$record(_) => $record::TABLE, )+
                }
            }

            /// The values of the key's columns, and of the others.
            pub(super) fn key_and_values(&self) -> (Vec<Value>, Vec<Value>) {
                match self {
                    $( AnyRecord::$record(record) => record.key_and_values(), )+
                }
            }

            /// The statement that writes it.
            pub(super) fn statement(&self) -> String {
                match self {
                    $( AnyRecord::$record(_) => upsert_of::<$record>(), )+
                }
            }
        }

        /// What stood in the tables when they were opened, removals left out.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct StoredFacts {
            $( #[doc = concat!("The table `", stringify!($list), "`, each record with the time of its change.")]
               pub $list: Vec<(Timestamp, $record)>, )+
        }

        impl StoredFacts {
            /// Reads every table.
            pub(super) fn read(connection: &Connection, now: Timestamp) -> SqlResult<StoredFacts> {
                Ok(StoredFacts { $( $list: read_table::<$record>(connection, now)?, )+ })
            }
        }

        /// The definitions of all tables.
        pub(super) fn definitions() -> Vec<String> {
            vec![$( definition_of::<$record>(), )+]
        }

        /// The names of all tables.
        pub(super) const TABLES: &[&str] = &[$( $record::TABLE, )+];
    };
}
pub(super) use records;

/// The names of these columns, separated by commas.
fn names<'c>(columns: impl IntoIterator<Item = &'c (&'static str, &'static str)>) -> String {
    columns
        .into_iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// `CREATE TABLE` of a kind of record.
pub fn definition_of<R: Record>() -> String {
    let columns = R::KEY.iter().chain(R::VALUES);
    let columns: String = columns
        .map(|(name, column_type)| format!("  {name} {column_type},\n"))
        .collect();
    format!(
        "CREATE TABLE IF NOT EXISTS {} (\n{columns}  changed INTEGER NOT NULL,\n  removed INTEGER NOT NULL,\n  PRIMARY \
         KEY ({})\n) STRICT",
        R::TABLE,
        names(R::KEY)
    )
}

/// The statement that writes a record unless a later change is stored. Its parameters are the key's
/// columns, the others, `changed`, `removed` and the moment of writing.
///
/// A change counts as later only if it is so by more than `TOLERANCE` seconds; within them the
/// order of writing decides, and the later time is kept. A stored time that lies ahead of the
/// moment of writing counts as that moment.
pub fn upsert_of<R: Record>() -> String {
    let table = R::TABLE;
    let columns = R::KEY.len() + R::VALUES.len();
    let parameters = (1..=columns + 2)
        .map(|number| format!("?{number}"))
        .collect::<Vec<_>>()
        .join(", ");
    let now = columns + 3;
    let values: String = R::VALUES
        .iter()
        .map(|(name, _)| format!("{name} = excluded.{name}, "))
        .collect();
    let all = names(R::KEY.iter().chain(R::VALUES));
    format!(
        "INSERT INTO {table} ({all}, changed, removed) VALUES ({parameters}) ON CONFLICT ({key}) DO UPDATE SET \
         {values}changed = MAX(excluded.changed, MIN({table}.changed, ?{now})), removed = excluded.removed WHERE \
         excluded.changed + {TOLERANCE} >= MIN({table}.changed, ?{now})",
        key = names(R::KEY),
    )
}

/// Every record of a table that was not removed, with the time of its change, in the order of
/// insertion. Moments are read as `taken_as_past` says. Empty if the table is missing.
pub fn read_table<R: Record>(
    connection: &Connection,
    now: Timestamp,
) -> SqlResult<Vec<(Timestamp, R)>> {
    // A file of an older crawlgate that is only read stays as it is.
    if !connection.table_exists(None, R::TABLE)? {
        return Ok(Vec::new());
    }
    let all = names(R::KEY.iter().chain(R::VALUES));
    let changed = R::KEY.len() + R::VALUES.len();
    let mut statement = connection.prepare(&format!(
        "SELECT {all}, changed FROM {} WHERE removed = 0 ORDER BY rowid",
        R::TABLE
    ))?;
    statement
        .query_map([], |row| {
            Ok((Column::read_at(row.get(changed)?, now), R::read(row, now)?))
        })?
        .collect()
}
