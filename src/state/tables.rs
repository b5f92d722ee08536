//! The SQL of the state database `state.db`. Each kind of fact (such as which robots.txt a crawler
//! was served) has one table. The statements create the tables, write facts and read facts.
//! [`StateTables`] reads the facts from an open file.

use crate::facts::{
    CLOCK_TOLERANCE, ColumnSchema, ColumnType, ColumnValue, Expiry, FactSource, FactTable,
    SqlTableSchema,
};
use crate::printable::join;
use crate::time::Timestamp;
use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Result as SqlResult, Row};

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

impl ToSql for ColumnValue {
    fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
        use ColumnValue::*;
        Ok(ToSqlOutput::Borrowed(match self {
            Null => ValueRef::Null,
            Integer(number) => ValueRef::Integer(*number),
            Time(moment) => ValueRef::Integer(moment.0),
            Text(text) => ValueRef::Text(text.as_bytes()),
            Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A moment is read as a number, which the field converts.
impl FromSql for ColumnValue {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<ColumnValue> {
        use ColumnValue::*;
        Ok(match value {
            ValueRef::Null => Null,
            ValueRef::Blob(bytes) => Bytes(bytes.into()),
            ValueRef::Integer(number) => Integer(number),
            value => Text(value.as_str()?.to_owned()),
        })
    }
}

/// The names of these columns, separated by commas.
fn column_names<'c>(columns: impl IntoIterator<Item = &'c ColumnSchema>) -> String {
    join(columns.into_iter().map(|column| column.name), ", ")
}

/// The column with the moment after which facts of a table may be deleted.
pub fn expiry_column(table: &SqlTableSchema) -> Option<&'static str> {
    use Expiry::*;
    match table.expiry {
        Never => None,
        Until => Some("until"),
        Unconfirmed => Some("changed"),
    }
}

/// The statements that create the table of a kind of fact, and the indexes that find deletable
/// facts.
pub fn create_table_sql(table: &SqlTableSchema) -> String {
    let columns: String = table
        .key
        .iter()
        .chain(table.values)
        .map(|column| format!("  {} {},\n", column.name, column.sql_type))
        .collect();
    let name = table.name;
    let mut statements = format!(
        "CREATE TABLE IF NOT EXISTS {name} (\n{columns}  changed INTEGER NOT NULL,\n  removed INTEGER NOT NULL,\n  PRIMARY \
         KEY ({})\n) STRICT; CREATE INDEX IF NOT EXISTS {name}_removed ON {name} (changed) WHERE removed = 1;",
        column_names(table.key)
    );
    if let Some(end) = expiry_column(table) {
        statements.push_str(&format!(
            "CREATE INDEX IF NOT EXISTS {name}_by_end ON {name} ({end});"
        ));
    }
    statements
}

/// The statement that writes a fact unless a later change is stored. Its parameters are the key's
/// columns, the others, `changed`, `removed` and the moment of writing.
///
/// A stored change counts as later only by more than `CLOCK_TOLERANCE` seconds. Otherwise the order
/// of writing decides, and the later time is kept. A stored time after the moment of writing counts
/// as that moment.
pub fn upsert_sql(info: &SqlTableSchema) -> String {
    let table = info.name;
    let columns = info.key.len() + info.values.len();
    let parameters = join((1..=columns + 2).map(|number| format!("?{number}")), ", ");
    let now = columns + 3;
    let values: String = info
        .values
        .iter()
        .map(|column| format!("{0} = excluded.{0}, ", column.name))
        .collect();
    let all = column_names(info.key.iter().chain(info.values));
    format!(
        "INSERT INTO {table} ({all}, changed, removed) VALUES ({parameters}) ON CONFLICT ({key}) DO UPDATE SET \
         {values}changed = MAX(excluded.changed, MIN({table}.changed, ?{now})), removed = excluded.removed WHERE \
         excluded.changed + {CLOCK_TOLERANCE} >= MIN({table}.changed, ?{now})",
        key = column_names(info.key),
    )
}

/// The tables of a file, read at a moment.
pub struct StateTables<'a> {
    pub connection: &'a Connection,
    /// Moments after it are clamped to it (`clamp_to_now`).
    pub now: Timestamp,
}

impl FactSource for StateTables<'_> {
    type Error = rusqlite::Error;

    /// Returns the facts in the order of insertion. Empty if the table is missing.
    fn read<T: FactTable>(&self) -> SqlResult<Vec<(Timestamp, T)>> {
        // A file that is only read may lack tables.
        if !self.connection.table_exists(None, T::SCHEMA.name)? {
            return Ok(Vec::new());
        }
        let all = column_names(T::SCHEMA.key.iter().chain(T::SCHEMA.values));
        let mut statement = self.connection.prepare(&format!(
            "SELECT {all}, changed FROM {} WHERE removed = 0 ORDER BY rowid",
            T::SCHEMA.name
        ))?;
        let count = T::SCHEMA.key.len() + T::SCHEMA.values.len();
        statement
            .query_map([], |row| read_row(row, count, self.now))?
            .collect()
    }
}

/// Reads the fact of a row with `count` columns, and the time of its last change.
fn read_row<T: FactTable>(
    row: &Row<'_>,
    count: usize,
    now: Timestamp,
) -> SqlResult<(Timestamp, T)> {
    let columns = (0..count).map(|column| row.get(column));
    let columns: Vec<ColumnValue> = columns.collect::<SqlResult<_>>()?;
    let mut changed: Timestamp = row.get(count)?;
    changed.clamp_to(now);
    let fact = T::read(&mut columns.into_iter(), now).ok_or_else(|| {
        rusqlite::Error::InvalidColumnType(
            0,
            T::SCHEMA.name.to_owned(),
            rusqlite::types::Type::Null,
        )
    })?;
    Ok((changed, fact))
}
