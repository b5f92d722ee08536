//! The layer around a tonic server, as gRPC clients see it.

use super::{BROWSER, GPTBOT};
use crawlgate::middleware::GateLayer;
use std::net::SocketAddr;
use tonic::Code;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};
use tonic::transport::{Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// What a client with this user agent gets.
async fn check(address: SocketAddr, agent: &str) -> Result<i32, Code> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .and_then(|endpoint| endpoint.user_agent(agent));
    let channel = endpoint
        .expect("an address")
        .connect()
        .await
        .expect("a connection");
    let answer = HealthClient::new(channel)
        .check(HealthCheckRequest::default())
        .await;
    answer
        .map(|answer| answer.into_inner().status)
        .map_err(|status| status.code())
}

#[test]
fn tonic_refuses_crawlers_with_permission_denied() {
    let policies = tempfile::tempdir().expect("a directory");
    let policy = "purposes: { training: disallow }\nrobots: { origin: replace }\nenforcement: { mode: enforce }\n\
                  crawlers: [{ token: PartnerBot, networks: [127.0.0.0/8] }]\n";
    std::fs::write(policies.path().join("api.yaml"), policy).expect("a policy");
    let gate = GateLayer::builder(policies.path())
        .peer(|extensions| Some(extensions.get::<TcpConnectInfo>()?.remote_addr()?.ip()))
        .open()
        .expect("a gate");
    let metrics = gate.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let answers = runtime.block_on(async {
        let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let address = incoming.local_addr().expect("its address");
        let (_, health) = tonic_health::server::health_reporter();
        tokio::spawn(
            Server::builder()
                .layer(gate)
                .add_service(health)
                .serve_with_incoming(incoming),
        );
        [
            check(address, BROWSER).await,
            check(address, "PartnerBot/1.0").await,
            check(address, GPTBOT).await,
        ]
    });
    drop(runtime);
    assert_eq!(
        answers,
        [
            Ok(ServingStatus::Serving as i32),
            Ok(ServingStatus::Serving as i32),
            Err(Code::PermissionDenied)
        ]
    );
    let counted = metrics.metrics();
    for series in [
        r#"crawlgate_requests_total{action="block",crawler="gptbot",identity="unverified",kind="unproven",site="api"} 1"#,
        r#"crawlgate_identity_total{crawler="other",outcome="verified"} 1"#,
    ] {
        assert!(counted.contains(series), "{series}\n{counted}");
    }
}
