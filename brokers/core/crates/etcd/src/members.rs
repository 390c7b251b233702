//! The members of an etcd cluster: one of them gets the calls, and where it fails the next one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use etcd_client::{Client, Error, GetOptions, KvClient, WatchClient};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::failure::{Failure, failure_of};
use super::{ANSWER_BYTES_MAX, EtcdOptions, first_of, no_answer, signed};
use freshet_metadata::store::MetadataError;

/// The members (see the module).
pub struct Members {
    options: EtcdOptions,
    clients: Vec<OnceCell<Client>>,
    /// The index of the member that gets the calls.
    current: AtomicUsize,
    /// Whether the last call was not answered.
    away: AtomicBool,
}

/// What a call changes, which decides whether it may be repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    Nothing,
    Something,
}

impl Members {
    /// # Errors
    /// [`MetadataError::Invalid`] where there is none.
    pub fn new(options: EtcdOptions) -> Result<Self, MetadataError> {
        if options.endpoints.is_empty() {
            return Err(MetadataError::Invalid("no member of etcd is named".to_owned()));
        }
        let clients = options.endpoints.iter().map(|_| OnceCell::new()).collect();
        let (current, away) = (AtomicUsize::new(0), AtomicBool::new(false));
        Ok(Self { options, clients, current, away })
    }

    /// Whether the last call was not answered.
    pub fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// The timeout of a call to one member.
    pub fn request_timeout(&self) -> Duration {
        self.options.request_timeout
    }

    /// Checks that etcd answers, and that its history reaches back to `revision` where that is not
    /// 0.
    pub async fn look(&self, prefix: &str, revision: u64) -> Result<(), Failure> {
        let options = GetOptions::new().with_keys_only().with_limit(1);
        let options = options.with_revision(signed(revision));
        let looked = self.call(Changes::Nothing, |mut kv| {
            let (key, options) = (first_of(prefix).to_owned(), options.clone());
            async move { kv.get(key, Some(options)).await }
        });
        match looked.await {
            // Nothing has changed since that revision.
            Ok(_) | Err(Failure::Future) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Makes a call. Each of the other members is tried where one has certainly not carried it out,
    /// or where a repetition does no harm because the call changes nothing.
    pub async fn call<T, F>(
        &self,
        changes: Changes,
        ask: impl Fn(KvClient) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut others = self.clients.len() - 1;
        let mut renewed = false;
        loop {
            let member = self.current.load(Ordering::Relaxed);
            let failure = match self.ask(member, &ask).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match &failure {
                Failure::OldToken(_) if !renewed => {
                    renewed = true;
                    self.renew(member).await?;
                    continue;
                }
                Failure::Lost(_) | Failure::Refused(_) => self.leave(member),
                _ => return Err(failure),
            }
            let done = matches!(failure, Failure::Lost(_)) && changes == Changes::Something;
            if done || others == 0 {
                return Err(failure);
            }
            others -= 1;
        }
    }

    async fn ask<T, F>(&self, member: usize, ask: &impl Fn(KvClient) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let client = self.client(member).await?;
        let call = ask(client.kv_client().max_decoding_message_size(ANSWER_BYTES_MAX));
        self.answered(call).await
    }

    /// Waits for an answer within the timeout, and remembers whether there was one.
    async fn answered<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        let limit = self.options.request_timeout;
        let answer = timeout(limit, call).await;
        self.away.store(answer.is_err(), Ordering::Relaxed);
        let answer = answer.map_err(|_| Failure::Lost(no_answer(limit)))?;
        answer.map_err(|error| failure_of(&error))
    }

    async fn client(&self, member: usize) -> Result<&Client, Failure> {
        let endpoints = &self.options.endpoints[member..=member];
        let connecting = || async {
            let connecting = Client::connect(endpoints, Some(self.options.connect_options()));
            // Only the password was sent until now.
            self.answered(connecting).await.map_err(|failure| match failure {
                Failure::Lost(reason) => Failure::Refused(reason),
                other => other,
            })
        };
        self.clients[member].get_or_try_init(connecting).await
    }

    async fn renew(&self, member: usize) -> Result<(), Failure> {
        let client = self.client(member).await?;
        self.answered(client.refresh_token()).await
    }

    /// A client for watches on the current member, with the member's index.
    pub async fn watcher(&self) -> Result<(WatchClient, usize), Failure> {
        let member = self.current.load(Ordering::Relaxed);
        let client = self.client(member).await?.watch_client();
        Ok((client.max_decoding_message_size(ANSWER_BYTES_MAX), member))
    }

    /// Goes on with the next member, unless another call has done that already.
    pub fn leave(&self, member: usize) {
        let next = (member + 1) % self.clients.len();
        let (now, later) = (Ordering::Relaxed, Ordering::Relaxed);
        // It fails where another call has left the member already, which is the same.
        let _ = self.current.compare_exchange(member, next, now, later);
    }
}
