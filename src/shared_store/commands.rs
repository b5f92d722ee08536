//! [`run`] sends commands over one connection and reads their answers. It stops at the first answer that does not come. The
//! crate redis itself would wait anew for each answer of the pipeline after that one.

use redis::{Connection, FromRedisValue, Pipeline, RedisResult, Value};

/// Sends commands and reads the answers. `None` where a transaction was not done, because a key that it watched was written.
pub(super) fn run(connection: &mut Connection, pipeline: &Pipeline) -> RedisResult<Option<Vec<Value>>> {
    connection.send_packed_command(&pipeline.get_packed_pipeline())?;
    let count = if pipeline.is_transaction() { pipeline.len() + 1 } else { pipeline.len() };
    let mut answers = Vec::with_capacity(count);
    for _ in 0..count {
        answers.push(connection.recv_response()?.extract_error()?);
    }
    if !pipeline.is_transaction() {
        return Ok(Some(answers));
    }
    // Before it there was one answer for the beginning, and one for each command that waited.
    Option::from_redis_value(connection.recv_response()?.extract_error()?).map_err(Into::into)
}

/// Takes the last answer out.
pub(super) fn last<T: FromRedisValue>(answers: &mut Vec<Value>) -> RedisResult<T> {
    T::from_redis_value(answers.pop().unwrap_or(Value::Nil)).map_err(Into::into)
}
