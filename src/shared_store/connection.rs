//! [`SharedStore`]: the one connection to the store, made anew after each error. [`examine`] refuses a server that crawlgate
//! cannot use: an old one, a node of a cluster, a replica, one that deletes keys, or one with keys of another program.

use crate::exchange::StoreError;
use crate::settings::{StoreSettings, StoreUrl};
use redis::{
    Client, Connection, ConnectionAddr, ErrorKind, FromRedisValue, IntoConnectionInfo, Pipeline, RedisConnectionInfo,
    RedisError, RedisResult, ServerErrorKind, TlsCertificates, Value,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long connecting may take, with TLS and the password; and each answer. The exchange takes a store for away after it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The oldest Redis with what is needed: `ZADD GT` and exclusive ranges of streams. Valkey says that it is Redis 7.2.
const OLDEST: (u32, u32) = (6, 2);

/// What the value of the key `epoch` begins with, so that no value of another program is taken for it.
pub(super) const MARK: &str = "crawlgate ";

/// The keys, and their types.
pub(super) const KEYS: [(&str, &str); 6] = [
    ("epoch", "string"),
    ("served", "zset"),
    ("clients", "zset"),
    ("facts", "hash"),
    ("members", "hash"),
    ("log", "stream"),
];

/// A Valkey or Redis.
pub struct SharedStore {
    pub(super) settings: StoreSettings,
    connected: Option<Connected>,
}

/// A connection to a server that can be used.
pub(super) struct Connected {
    pub(super) connection: Connection,
    /// `run_id` of `INFO server`.
    pub(super) run_id: String,
}

impl Connected {
    /// Sends commands and reads the answers.
    pub(super) fn run(&mut self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        Ok(run(&mut self.connection, pipeline)?.unwrap_or_default())
    }
}

impl SharedStore {
    /// A store by these settings, without a connection yet.
    pub fn new(settings: StoreSettings) -> SharedStore {
        SharedStore { settings, connected: None }
    }

    /// The name of a key.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.settings.prefix)
    }

    /// Does something over the connection. An error ends it: what was not read of an answer is not to be taken for the next.
    pub(super) fn ask<T>(&mut self, ask: impl FnOnce(&mut Connected) -> RedisResult<T>) -> Result<T, StoreError> {
        let mut connected = match self.connected.take() {
            Some(connected) => connected,
            None => self.connect()?,
        };
        let answer = ask(&mut connected).map_err(|error| of_error(&error, &self.settings.url))?;
        self.connected = Some(connected);
        Ok(answer)
    }

    fn connect(&self) -> Result<Connected, StoreError> {
        let client = client(&self.settings)?;
        let connection = client.get_connection_with_timeout(PATIENCE).and_then(|connection| {
            connection.set_read_timeout(Some(PATIENCE))?;
            connection.set_write_timeout(Some(PATIENCE))?;
            Ok(connection)
        });
        let mut connection = connection.map_err(|error| of_error(&error, &self.settings.url))?;
        let run_id = examine(&mut connection, &self.settings)?;
        Ok(Connected { connection, run_id })
    }
}

/// A client by the settings. The password is read each time: files of passwords are replaced.
fn client(settings: &StoreSettings) -> Result<Client, StoreError> {
    let StoreSettings { url, password_file, ca, .. } = settings;
    let read = |path: &Path| {
        crate::files::read(path).map_err(|error| Refusal::File { path: path.to_owned(), reason: error.to_string() })
    };
    let password = match password_file {
        Some(path) => {
            let text = String::from_utf8_lossy(&read(path)?).trim_end_matches(['\r', '\n']).to_owned();
            if text.is_empty() {
                return Err(Refusal::File { path: path.clone(), reason: "it is empty".into() }.into());
            }
            Some(text)
        }
        None => url.password.as_ref().map(|password| password.0.clone()),
    };
    let mut info = RedisConnectionInfo::default().set_db(url.database.into()).set_skip_set_lib_name();
    if let Some(user) = &url.user {
        info = info.set_username(user);
    }
    if let Some(password) = password {
        info = info.set_password(password);
    }
    let authorities = ca.as_deref().map(read).transpose()?;
    let (host, port) = (url.host.clone(), url.port);
    let address = match url.tls {
        true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        false => ConnectionAddr::Tcp(host, port),
    };
    let info = address.into_connection_info().map(|address| address.set_redis_settings(info));
    let opened = info.and_then(|info| match authorities {
        Some(_) => Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: authorities }),
        None => Client::open(info),
    });
    opened.map_err(|error| of_error(&error, url))
}

/// Sends commands and reads the answers. `None` where a transaction was not done, because a key that it watched was written.
/// Stops at the first answer that does not come: the crate redis itself would wait anew for each answer after that one.
pub(super) fn run(connection: &mut Connection, pipeline: &Pipeline) -> RedisResult<Option<Vec<Value>>> {
    connection.send_packed_command(&pipeline.get_packed_pipeline())?;
    // Before the answer of a transaction there is one for its beginning, and one for each command that waited.
    let count = pipeline.len() + usize::from(pipeline.is_transaction());
    let answers = (0..count).map(|_| connection.recv_response()?.extract_error()).collect::<RedisResult<_>>()?;
    match pipeline.is_transaction() {
        true => Ok(Option::from_redis_value(connection.recv_response()?.extract_error()?)?),
        false => Ok(Some(answers)),
    }
}

/// Takes the last answer out.
pub(super) fn last<T: FromRedisValue>(answers: &mut Vec<Value>) -> RedisResult<T> {
    Ok(T::from_redis_value(answers.pop().unwrap_or(Value::Nil))?)
}

/// Refuses a server that cannot be used; returns which run of which server it is.
fn examine(connection: &mut Connection, settings: &StoreSettings) -> Result<String, StoreError> {
    let url = settings.url.to_string();
    let failed = |error: RedisError| of_error(&error, &settings.url);
    let info: String = redis::cmd("INFO").arg("everything").query(connection).map_err(failed)?;
    let info = fields(&info);
    let said = |name: &str| info.get(name).copied().unwrap_or_default();
    let version = said("redis_version");
    if number(version) < OLDEST {
        return Err(Refusal::TooOld { url, version: version.to_owned() }.into());
    }
    if said("redis_mode") == "cluster" || said("cluster_enabled") == "1" {
        return Err(Refusal::Cluster { url }.into());
    }
    if said("role") == "slave" {
        return Err(Refusal::Replica { url }.into());
    }
    refuse_eviction(&info, &settings.url)?;
    if let Some(key) = foreign_key(connection, &settings.prefix).map_err(failed)? {
        return Err(Refusal::Foreign { url, key }.into());
    }
    Ok(said("run_id").to_owned())
}

/// What `INFO` says, by name.
pub(super) fn fields(info: &str) -> HashMap<&str, &str> {
    info.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

/// Refuses a server that deletes keys when its memory is full.
pub(super) fn refuse_eviction(info: &HashMap<&str, &str>, url: &StoreUrl) -> Result<(), StoreError> {
    match info.get("maxmemory_policy").copied().unwrap_or_default() {
        "noeviction" => Ok(()),
        policy => Err(Refusal::Evicts { url: url.to_string(), policy: policy.to_owned() }.into()),
    }
}

/// A key that another program made.
fn foreign_key(connection: &mut Connection, prefix: &str) -> RedisResult<Option<String>> {
    let mut types = redis::pipe();
    for (name, _) in KEYS {
        types.cmd("TYPE").arg(format!("{prefix}{name}"));
    }
    let types = run(connection, &types)?.unwrap_or_default().into_iter().map(String::from_redis_value);
    let types = types.collect::<Result<Vec<String>, _>>()?;
    let found = types.iter().zip(KEYS).find(|(found, (_, wanted))| *found != "none" && found != wanted);
    if let Some((_, (name, _))) = found {
        return Ok(Some(format!("{prefix}{name}")));
    }
    let key = format!("{prefix}epoch");
    let epoch: Option<Vec<u8>> = redis::cmd("GET").arg(&key).query(connection)?;
    Ok(epoch.filter(|epoch| !epoch.starts_with(MARK.as_bytes())).map(|_| key))
}

/// `7.0.15` in numbers.
fn number(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Why a store cannot be used as it is. It needs a person.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// It deletes keys when its memory is full.
    #[error(
        "the store at {url} deletes keys when its memory is full (`maxmemory-policy {policy}`), and crawlgate would accuse \
         crawlers of what it then does not know; crawlgate does not use it. Set `maxmemory-policy noeviction`"
    )]
    Evicts { url: String, policy: String },
    /// It is older than crawlgate needs.
    #[error("the store at {url} is Redis {version}; crawlgate does not use it. Install Redis 6.2 or later, or Valkey")]
    TooOld { url: String, version: String },
    /// It is one of several servers that share keys.
    #[error(
        "the store at {url} is a node of a cluster; crawlgate does not use it. Name one server, or the address of one with a \
         replica that takes its place"
    )]
    Cluster { url: String },
    /// It is a replica of another server.
    #[error(
        "the store at {url} is a replica and takes nothing; crawlgate does not use it. Name the primary server in `store`"
    )]
    Replica { url: String },
    /// It refuses the user or the password.
    #[error(
        "the store at {url} refuses the user or the password ({reason}); crawlgate does not use it. Mend `store` of \
         crawlgate.yaml, or the user in the store"
    )]
    Password { url: String, reason: String },
    /// The user may not do what is needed.
    #[error(
        "the store at {url} does not let this user do what crawlgate needs ({reason}); crawlgate does not use it. \
         docs/instances.md has the line for its access list"
    )]
    Rights { url: String, reason: String },
    /// Other keys have the names of crawlgate's.
    #[error(
        "the key `{key}` in the store at {url} is not crawlgate's; crawlgate does not use the store. Choose another `prefix` \
         or another database for `store` in crawlgate.yaml"
    )]
    Foreign { url: String, key: String },
    /// Its memory or its disk is full.
    #[error(
        "the store at {url} takes nothing ({reason}); crawlgate goes on without it. Give it more memory (`maxmemory`) or \
         space on its disk"
    )]
    Full { url: String, reason: String },
    /// A file of the settings cannot be read.
    #[error("cannot read {} of `store`: {reason}; crawlgate goes on without the store. Mend the file", path.display())]
    File { path: PathBuf, reason: String },
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> StoreError {
        match refusal {
            Refusal::Evicts { .. } => StoreError::Evicts(refusal.to_string()),
            _ => StoreError::Unusable(refusal.to_string()),
        }
    }
}

/// What an error of the client means: a store that cannot be used as it is, or one that is away.
fn of_error(error: &RedisError, url: &StoreUrl) -> StoreError {
    let reason =
        || error.detail().map_or_else(|| error.to_string(), |detail| format!("{}: {detail}", error.category()));
    let url = url.to_string();
    let refusal = match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => {
            Refusal::Password { url, reason: reason() }
        }
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) => Refusal::Rights { url, reason: reason() },
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => Refusal::Replica { url },
        (_, Some("OOM" | "MISCONF")) => Refusal::Full { url, reason: reason() },
        _ => return StoreError::Away(format!("the store at {url} does not answer: {}", reason())),
    };
    refusal.into()
}
