//! Helpers for the SQL of the history tables (request counts and samples for the dashboard): they
//! run a query and convert its rows, convert a count to an integer of SQLite, and delete the oldest
//! rows.

use rusqlite::{Connection, Params, Result as SqlResult, Row as SqlRow};

/// Runs a query and converts each row.
pub fn query_rows<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    of_row: impl FnMut(&SqlRow<'_>) -> SqlResult<T>,
) -> SqlResult<Vec<T>> {
    connection
        .prepare(sql)?
        .query_map(values, of_row)?
        .collect()
}

/// Converts a count to an SQLite integer, at most the largest.
pub fn to_sql_integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Deletes the oldest periods of a table with more than `max` rows. `column` has the beginning of
/// the period.
pub fn delete_oldest(
    connection: &Connection,
    table: &str,
    column: &str,
    max: i64,
) -> SqlResult<()> {
    let count = format!("SELECT COUNT(*) FROM {table}");
    let rows: i64 = connection.query_row(&count, [], |row| row.get(0))?;
    if rows > max {
        let oldest = format!("SELECT {column} FROM {table} ORDER BY {column} LIMIT 1 OFFSET ?1");
        let before: i64 = connection.query_row(&oldest, [rows - max], |row| row.get(0))?;
        let delete = format!("DELETE FROM {table} WHERE {column} <= ?1");
        connection.execute(&delete, [before])?;
    }
    Ok(())
}
