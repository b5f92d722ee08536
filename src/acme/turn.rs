//! The turn of one host: [`Turn::take`] asks for a suggestion, and orders a certificate where one is due. All that a restart must
//! not forget is stored before it is acted on.

use super::account::Accounts;
use super::authority::BoundedHttp;
use super::certificate::IssuedCertificate;
use super::failure::OrderError;
use super::issued::Issued;
use super::order::finish;
use super::progress::{ChallengeKind, Progress, RunningOrder};
use super::reach::{Ports, Reach};
use super::renewal;
use super::storage::Storage;
use crate::clock::Clock;
use crate::settings::{AcmeSettings, ChallengeChoice};
use crate::time::Timestamp;
use instant_acme::{Account, Error, Identifier, NewOrder, Order};
use rcgen::KeyPair;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The limit for all that a host does in its turn.
const TIME: Duration = Duration::from_secs(600);

/// What all turns share.
pub(super) struct Shared {
    pub(super) settings: AcmeSettings,
    pub(super) storage: Storage,
    pub(super) issued: Arc<Issued>,
    pub(super) accounts: Accounts,
    pub(super) clock: Clock,
    pub(super) ports: Ports,
    /// Whether a listener of this crawlgate speaks clear text.
    pub(super) has_clear_text: bool,
}

/// The turn of a host.
pub(super) struct Turn {
    pub(super) shared: Arc<Shared>,
    pub(super) host: String,
    pub(super) progress: Progress,
    http: BoundedHttp,
}

/// How a turn ended.
pub(super) struct Ended {
    pub(super) host: String,
    pub(super) progress: Progress,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    /// A certificate was issued, is stored and in use.
    Obtained,
    /// No certificate is due.
    Asked,
    /// It failed; the pause is in the progress.
    Failed(OrderError),
}

impl Turn {
    pub(super) fn new(shared: Arc<Shared>, host: String, progress: Progress) -> Turn {
        Turn { shared, host, progress, http: BoundedHttp::new() }
    }

    /// Takes the turn. It ends within bounds, and its end is stored.
    pub(super) async fn take(mut self) -> Ended {
        let taken = timeout(TIME, self.work()).await;
        let outcome = taken.unwrap_or_else(|_| Err(OrderError::Away("it takes too long".into())));
        let outcome = outcome.unwrap_or_else(Outcome::Failed);
        if let Outcome::Failed(error) = &outcome {
            let now = self.now();
            self.progress.fail(error, self.http.retry_after(), now);
        }
        if let Err(error) = self.shared.storage.write_progress(&self.host, &self.progress) {
            tracing::warn!(host = self.host, "cannot store how the order stands: {error}");
        }
        Ended { host: self.host, progress: self.progress, outcome }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.shared.clock.now())
    }

    async fn work(&mut self) -> Result<Outcome, OrderError> {
        self.shared.storage.prepare()?;
        let certificate = self.shared.issued.get(&self.host);
        if let Some(certificate) = &certificate {
            self.ask_for_suggestion(certificate).await;
            if self.progress.order.is_none()
                && self.now() < renewal::due(certificate, self.progress.suggestion.as_ref())
            {
                return Ok(Outcome::Asked);
            }
        }
        match self.obtain(certificate.as_deref()).await {
            Err(OrderError::NoAccount(_)) => {
                // An authority that lost its accounts, as a test authority does at each start.
                self.shared.storage.remove_account();
                self.progress.order = None;
                self.obtain(certificate.as_deref()).await
            }
            outcome => outcome,
        }
        .map(|()| Outcome::Obtained)
    }

    async fn account(&self) -> Result<Account, OrderError> {
        self.shared.accounts.open(&self.shared.settings, &self.shared.storage, &self.http).await
    }

    /// Asks the authority when it suggests to renew. A failure is none of the host: two thirds of the life hold.
    async fn ask_for_suggestion(&mut self, certificate: &IssuedCertificate) {
        let now = self.now();
        let Some(id) = &certificate.id else { return };
        if !renewal::is_to_be_asked(certificate, self.progress.suggestion.as_ref(), now) {
            return;
        }
        let answer = match self.account().await {
            Ok(account) => account.renewal_info(id).await.map_err(OrderError::from),
            Err(error) => Err(error),
        };
        let (window, again) = match answer {
            Ok((info, again)) => {
                let window = (info.suggested_window.start.unix_timestamp(), info.suggested_window.end.unix_timestamp());
                (Some(window), Some(again))
            }
            Err(error) => {
                tracing::debug!(host = self.host, %error, "the authority suggests no renewal");
                (None, None)
            }
        };
        self.progress.suggestion = Some(renewal::suggestion(certificate, window, again, now));
    }

    async fn obtain(&mut self, former: Option<&IssuedCertificate>) -> Result<(), OrderError> {
        if let Some(running) = self.progress.order.clone() {
            let account = self.account().await?;
            match account.order(running.url.clone()).await {
                Ok(order) => match self.complete(order, &running).await {
                    // The authority may have asked while no crawlgate answered.
                    Err(OrderError::Refused(reason)) => {
                        tracing::info!(
                            host = self.host,
                            "the order of before failed: {reason}; crawlgate makes another one"
                        );
                    }
                    outcome => return outcome,
                },
                Err(error @ Error::Api(_)) => {
                    tracing::debug!(host = self.host, %error, "the authority does not know the order any more");
                    self.set_order(None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let ways = self.ways().await?;
        let account = self.account().await?;
        let last = ways.len().saturating_sub(1);
        for (place, kind) in ways.into_iter().enumerate() {
            let (order, running) = self.order(&account, former, kind).await?;
            match self.complete(order, &running).await {
                Err(OrderError::Refused(reason)) if place < last => {
                    tracing::warn!(host = self.host, challenge = ?kind, "{reason}; crawlgate tries the other challenge");
                }
                outcome => return outcome,
            }
        }
        Err(OrderError::Refused("there is no challenge to try".into()))
    }

    /// The ways by which the authority may reach this crawlgate, the surest first.
    async fn ways(&self) -> Result<Vec<ChallengeKind>, OrderError> {
        let kinds: &[ChallengeKind] = match (self.shared.settings.challenge, self.shared.has_clear_text) {
            (ChallengeChoice::Any, true) => &[ChallengeKind::Http, ChallengeKind::TlsAlpn],
            (ChallengeChoice::Any, false) | (ChallengeChoice::TlsAlpn, _) => &[ChallengeKind::TlsAlpn],
            (ChallengeChoice::Http, _) => &[ChallengeKind::Http],
        };
        let Shared { settings, issued, ports, .. } = &*self.shared;
        let reach = Reach { issued, resolvers: &settings.resolvers, ports: *ports };
        reach.ways(&self.host, kinds).await.map_err(OrderError::Elsewhere)
    }

    /// Makes a key and an order, and stores both.
    async fn order(
        &mut self,
        account: &Account,
        former: Option<&IssuedCertificate>,
        challenge: ChallengeKind,
    ) -> Result<(Order, RunningOrder), OrderError> {
        let key = KeyPair::generate()?.serialize_pem();
        let identifiers = [Identifier::Dns(self.host.clone())];
        let has_suggestion = self.progress.suggestion.as_ref().is_some_and(|suggestion| suggestion.window.is_some());
        let replaced = former.filter(|_| has_suggestion).and_then(|former| former.id.clone());
        let order = match replaced {
            // An authority may refuse this of a certificate that was replaced already, and then takes the order without.
            Some(id) => match account.new_order(&NewOrder::new(&identifiers).replaces(id)).await {
                Ok(order) => order,
                Err(error) => match OrderError::from(error) {
                    error @ OrderError::Limited(_) => return Err(error),
                    _ => account.new_order(&NewOrder::new(&identifiers)).await?,
                },
            },
            None => account.new_order(&NewOrder::new(&identifiers)).await?,
        };
        let running = RunningOrder { url: order.url().to_owned(), key, challenge };
        self.set_order(Some(running.clone()))?;
        Ok((order, running))
    }

    /// Brings an order to its end. One that failed for good is forgotten, one that was not asked to its end goes on next time.
    async fn complete(&mut self, mut order: Order, running: &RunningOrder) -> Result<(), OrderError> {
        let host = &self.host;
        let finished = finish(&mut order, running, host, &self.shared.issued).await;
        let taken = finished.and_then(|pem| {
            let (storage, now) = (&self.shared.storage, Timestamp::from(self.shared.clock.now()));
            let mut certificate = IssuedCertificate::read(host, &pem, storage.certificate_file(host))?.valid_at(now)?;
            storage.write_certificate(host, &pem)?;
            certificate.obtained = Some(now);
            Ok(certificate)
        });
        match taken {
            Ok(certificate) => {
                self.shared.issued.insert(certificate);
                self.progress = Progress::default();
                Ok(())
            }
            Err(error @ (OrderError::Away(_) | OrderError::Limited(_) | OrderError::Storage(_))) => Err(error),
            Err(error) => {
                self.set_order(None)?;
                Err(error)
            }
        }
    }

    fn set_order(&mut self, order: Option<RunningOrder>) -> Result<(), OrderError> {
        self.progress.order = order;
        Ok(self.shared.storage.write_progress(&self.host, &self.progress)?)
    }
}
