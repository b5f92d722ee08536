//! Assembly of the running server.
