//! [`SharedStore`]: the one connection to the store, made anew after each error.

use super::commands::run;
use super::examine::{Server, examine};
use super::refusal::{Refusal, of_error};
use crate::exchange::StoreError;
use crate::settings::{StoreSettings, StoreUrl};
use redis::{
    Client, Connection, ConnectionAddr, IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisResult,
    TlsCertificates, Value,
};
use std::time::Duration;

/// How long connecting may take, with TLS and the password; and each answer. The exchange takes a store for away after it.
const PATIENCE: Duration = Duration::from_secs(2);

/// A Valkey or Redis.
pub struct SharedStore {
    settings: StoreSettings,
    connected: Option<Connected>,
}

/// A connection to a server that can be used.
pub(super) struct Connected {
    pub(super) connection: Connection,
    pub(super) server: Server,
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
    pub(super) fn with<T>(
        &mut self,
        ask: impl FnOnce(&mut Connected) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connected = match self.connected.take() {
            Some(connected) => connected,
            None => self.connect()?,
        };
        let answer = ask(&mut connected)?;
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
        let server = examine(&mut connection, &self.settings)?;
        Ok(Connected { connection, server })
    }

    pub(super) fn url(&self) -> &StoreUrl {
        &self.settings.url
    }
}

/// A client by the settings. The password is read each time: files of passwords are replaced.
fn client(settings: &StoreSettings) -> Result<Client, StoreError> {
    let StoreSettings { url, password_file, ca, .. } = settings;
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| Refusal::File { path: path.to_owned(), reason: error.to_string() })
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
    open(url, info, authorities).map_err(|error| of_error(&error, url))
}

fn open(url: &StoreUrl, info: RedisConnectionInfo, authorities: Option<Vec<u8>>) -> RedisResult<Client> {
    let StoreUrl { host, port, .. } = url;
    let address = match url.tls {
        true => ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None },
        false => ConnectionAddr::Tcp(host.clone(), *port),
    };
    let info = address.into_connection_info()?.set_redis_settings(info);
    match authorities {
        Some(root_cert) => {
            Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(root_cert) })
        }
        None => Client::open(info),
    }
}
