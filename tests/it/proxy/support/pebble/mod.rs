//! A test authority: pebble, with the DNS server that comes with it, in which every name leads to
//! this machine.

pub mod front;

use super::program::{Program, free_address};
use super::{Authority, Origin, Setup, TlsConnection, eventually};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// The running authority.
pub struct Pebble {
    /// Vouches for the authority's own https.
    pub transport: Authority,
    pub files: TempDir,
    dns: Program,
    management: SocketAddr,
    dns_management: SocketAddr,
    program: Option<Program>,
    /// Where it asks hosts.
    pub http: SocketAddr,
    pub tls: SocketAddr,
}

impl Pebble {
    pub fn start() -> Pebble {
        Pebble::with("")
    }

    /// With more lines of its configuration.
    pub fn with(more: &str) -> Pebble {
        let (transport, files) = (Authority::new(), tempfile::tempdir().expect("a directory"));
        transport.certify(files.path(), "pebble", &["localhost", "127.0.0.1"], 2100);
        let dns_management = free_address();
        let dns = Program::start(|prepared| {
            let mut dns = Command::new("pebble-challtestsrv");
            dns.args([
                "-http01",
                "",
                "-https01",
                "",
                "-tlsalpn01",
                "",
                "-defaultIPv6",
                "",
            ]);
            dns.args([
                "-dns01",
                &prepared.address.to_string(),
                "-management",
                &dns_management.to_string(),
            ]);
            dns
        });
        let (http, tls, management) = (free_address(), free_address(), free_address());
        let mut pebble = Pebble {
            transport,
            files,
            dns,
            management,
            dns_management,
            program: None,
            http,
            tls,
        };
        pebble.start_authority(more);
        pebble
    }

    fn start_authority(&mut self, more: &str) {
        let file = |kind: &str| {
            self.files
                .path()
                .join(format!("pebble.{kind}"))
                .display()
                .to_string()
        };
        let dns = self.dns.address.to_string();
        self.program = Some(Program::start(|prepared| {
            prepared.write(
                "pebble.json",
                format!(
                    "{{ \"pebble\": {{ \"listenAddress\": \"{}\", \"managementListenAddress\": \"{}\", \"certificate\": \"{}\", \
                     \"privateKey\": \"{}\", \"httpPort\": {}, \"tlsPort\": {}{more} }} }}",
                    prepared.address, self.management, file("pem"), file("key"), self.http.port(), self.tls.port()
                ),
            );
            let mut pebble = Command::new("pebble");
            pebble.args(["-config", &prepared.path("pebble.json"), "-dnsserver", &dns]);
            // Otherwise it waits up to 15 seconds before it asks a host.
            pebble.env("PEBBLE_VA_NOSLEEP", "1");
            // It refuses one nonce in twenty otherwise, which a process that was killed cannot answer.
            pebble.env("PEBBLE_WFE_NONCEREJECT", "0");
            pebble
        }));
    }

    fn program(&self) -> &Program {
        self.program.as_ref().expect("it runs")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.program().address
    }

    /// What it said.
    pub fn log(&self) -> String {
        self.program().log()
    }

    /// How many orders it took.
    pub fn orders(&self) -> usize {
        self.log().matches("Added order").count()
    }

    /// Lets a host lead to these addresses.
    pub fn point(&self, host: &str, addresses: &[&str]) {
        let addresses: Vec<String> = addresses
            .iter()
            .map(|address| format!("\"{address}\""))
            .collect();
        let body = format!(
            "{{\"host\":\"{host}.\",\"addresses\":[{}]}}",
            addresses.join(",")
        );
        eventually("the name server takes orders", || {
            let url = format!("http://{}/add-a", self.dns_management);
            let status = Command::new("curl")
                .args(["-sf", "-d", &body, &url])
                .status()
                .expect("curl");
            status.success().then_some(())
        });
    }

    /// `acme` of a listener.
    pub fn acme(&self, more: &str) -> String {
        self.acme_at(self.address(), more)
    }

    /// The same at another address.
    pub fn acme_at(&self, directory: SocketAddr, more: &str) -> String {
        format!(
            "acme: {{ directory: 'https://{directory}/dir', resolvers: '{}'{more} }}",
            self.dns.address
        )
    }

    /// crawlgate before an origin, with this `tls`; its second listener is for http and leads to
    /// https.
    pub fn setup(&self, origin: &Origin, tls: &str) -> Setup {
        let (http, https) = (self.http, self.tls);
        Setup::before(origin.address)
            .listeners(&format!(
                "[{{ address: '{https}', tls: {{ {tls} }} }}, {{ address: '{http}', redirect: https }}]"
            ))
            .environment("SSL_CERT_FILE", &self.transport.pem())
            .argument("--acme-ports")
            .argument(format!("{},{}", http.port(), https.port()))
    }

    /// A client that trusts what the authority issues.
    pub fn client(&self) -> Arc<ClientConfig> {
        let config = self
            .transport
            .client(&["http/1.1"], &[&rustls::version::TLS13]);
        let mut connection = TlsConnection::open(self.management, "127.0.0.1", &config)
            .expect("pebble's management");
        connection.send("GET /roots/0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        let answer = connection.response();
        let (_, pem) = answer.split_once("\r\n\r\n").expect("a body");
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(pem.as_bytes()).expect("a root"))
            .expect("a root");
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }
}
