//! One request as everything after its answer sees it: `RequestRecord` is made when a request
//! arrives, is judged and answered, and is then given to every sink (metrics, logs, evidence,
//! history).
