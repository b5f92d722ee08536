//! [`finish`] brings one order at the authority from its present status to the certificate. It answers the challenge,
//! sends the request for a certificate, and waits for the chain.

use super::failure::{self, OrderError};
use super::issued::{Answering, Issued};
use super::progress::{ChallengeKind, RunningOrder};
use instant_acme::{AuthorizationStatus, ChallengeStatus, ChallengeType, Order, OrderStatus, RetryPolicy};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use std::sync::Arc;
use std::time::Duration;

/// How long the authority may take to check, and to issue.
const PATIENCE: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).backoff(1.5).timeout(Duration::from_secs(180));

/// Brings an order to its end. Returns the private key and the chain, both in PEM.
pub async fn finish(
    order: &mut Order,
    running: &RunningOrder,
    host: &str,
    issued: &Arc<Issued>,
) -> Result<String, OrderError> {
    if order.state().status == OrderStatus::Pending {
        let answering = answer(order, running.challenge, host, issued).await?;
        let ready = order.poll_ready(&PATIENCE).await;
        drop(answering);
        if !matches!(ready, Ok(OrderStatus::Ready)) {
            let refused = refusal(order).await;
            return Err(refused.unwrap_or_else(|| match ready {
                Err(error) => error.into(),
                Ok(_) => OrderError::Refused("the order became invalid".into()),
            }));
        }
    }
    if order.state().status == OrderStatus::Ready {
        let key = KeyPair::from_pem(&running.key)?;
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        order.finalize_csr(params.serialize_request(&key)?.der()).await?;
    }
    if order.state().status == OrderStatus::Invalid {
        return Err(refusal(order).await.unwrap_or_else(|| OrderError::Refused("the order is invalid".into())));
    }
    let chain = order.poll_certificate(&PATIENCE).await?;
    Ok(format!("{}{chain}", running.key))
}

/// Answers the challenges of an order as long as the returned values live, and tells the authority to check them.
async fn answer(
    order: &mut Order,
    kind: ChallengeKind,
    host: &str,
    issued: &Arc<Issued>,
) -> Result<Vec<Answering>, OrderError> {
    let mut answering = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Pending => {}
            AuthorizationStatus::Valid => continue,
            _ => return Err(OrderError::Refused("an earlier check of this order failed".into())),
        }
        let mut challenge = authorization
            .challenge(match kind {
                ChallengeKind::Http => ChallengeType::Http01,
                ChallengeKind::TlsAlpn => ChallengeType::TlsAlpn01,
            })
            .ok_or_else(|| OrderError::Refused("the authority does not offer this challenge".into()))?;
        let proof = challenge.key_authorization().as_str().to_owned();
        let name = if kind == ChallengeKind::Http { &challenge.token } else { host };
        answering.push(issued.answer(kind, name, proof)?.0);
        // Of an order that goes on, the authority may be told already.
        if challenge.status == ChallengeStatus::Pending {
            challenge.set_ready().await?;
        }
    }
    Ok(answering)
}

/// The problem of the challenge that failed: the order itself does not say it.
async fn refusal(order: &mut Order) -> Option<OrderError> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.ok()?;
        let state = authorization.refresh().await.ok()?;
        let problem = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = problem {
            return Some(OrderError::Refused(failure::text(problem)));
        }
    }
    None
}
