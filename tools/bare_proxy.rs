//! A reverse proxy of bare Pingora, with what crawlgate sets and nothing that crawlgate does: the
//! yardstick of `benches/side-by-side/run`, and the least there is to a proxy for who wants to read
//! one.
//!
//! ```sh
//! cargo run --release --example bare_proxy -- 127.0.0.1:8080 127.0.0.1:3000    # listen, origin; [threads [certificate key]]
//! ```

use async_trait::async_trait;
use http::Version;
use pingora_core::Result;
use pingora_core::protocols::TcpKeepalive;
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{RunArgs, Server};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::{HttpProxy, ProxyHttp, Session};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

/// The allocator of the crawlgate binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Bare {
    origin: HttpPeer,
}

#[async_trait]
impl ProxyHttp for Bare {
    type CTX = ();

    fn new_ctx(&self) {}

    /// None: the default adds a compression module to every request, switched off. crawlgate leaves
    /// it out too.
    fn init_downstream_modules(&self, _modules: &mut pingora_core::modules::http::HttpModules) {}

    async fn early_request_filter(&self, session: &mut Session, (): &mut ()) -> Result<()> {
        session.set_write_timeout(Some(Duration::from_secs(60)));
        if session.req_header().version != Version::HTTP_10 && session.get_keepalive().is_some() {
            session.set_keepalive(Some(60));
        }
        Ok(())
    }

    async fn upstream_peer(&self, _session: &mut Session, (): &mut ()) -> Result<Box<HttpPeer>> {
        Ok(Box::new(self.origin.clone()))
    }
}

/// The timeouts that crawlgate has unless its settings say otherwise.
fn peer(origin: SocketAddr) -> HttpPeer {
    let mut peer = HttpPeer::new(origin, false, String::new());
    peer.options.connection_timeout = Some(Duration::from_secs(3));
    peer.options.total_connection_timeout = Some(Duration::from_secs(5));
    peer.options.read_timeout = Some(Duration::from_secs(60));
    peer.options.write_timeout = Some(Duration::from_secs(30));
    peer.options.idle_timeout = Some(Duration::from_secs(55));
    peer.options.tcp_keepalive = Some(TcpKeepalive {
        idle: Duration::from_secs(60),
        interval: Duration::from_secs(10),
        count: 3,
        #[cfg(target_os = "linux")]
        user_timeout: Duration::ZERO,
    });
    peer
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let address = |place: usize| {
        words
            .get(place)
            .and_then(|word| word.parse::<SocketAddr>().ok())
    };
    let (Some(listen), Some(origin)) = (address(0), address(1)) else {
        eprintln!(
            "usage: bare_proxy LISTEN ORIGIN [THREADS [CERTIFICATE KEY]]    # addresses with ports"
        );
        return ExitCode::from(2);
    };
    let threads = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(1);
    // As in src/server/proxy_server.rs.
    let configuration = ServerConf {
        threads,
        upstream_keepalive_pool_size: 512,
        max_retries: 2,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, configuration);
    server.bootstrap();
    let mut proxy = HttpProxy::new(
        Bare {
            origin: peer(origin),
        },
        server.configuration.clone(),
    );
    proxy.handle_init_modules();
    let mut service = pingora_core::services::listening::Service::new("bare".to_string(), proxy);
    match words.get(3..5) {
        Some([certificate, key]) => {
            if let Err(error) = service.add_tls(&listen.to_string(), certificate, key) {
                eprintln!("cannot use {certificate}: {error}");
                return ExitCode::from(1);
            }
        }
        _ => service.add_tcp(&listen.to_string()),
    }
    server.add_service(service);
    server.run(RunArgs::default());
    ExitCode::SUCCESS
}
