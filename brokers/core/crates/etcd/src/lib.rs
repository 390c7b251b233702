//! The metadata store of a cell of several machines: etcd, version 3.4 or newer, by its gRPC
//! interface. Every write is one transaction with compares; a read is linearizable.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{
    Compare as Condition, CompareOp, ConnectOptions, GetOptions, GetResponse, KeyValue, TlsOptions,
    Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use failure::Failure;
use freshet_metadata::store::{
    Entry, Expected, MetadataError, MetadataStore, Page, Transaction, Watch, Write, check_key,
};
use members::{Changes, Members};
use watch::EtcdWatch;

mod failure;
pub mod location;
mod members;
mod watch;

/// The most keys that one request reads; fewer where the answer would be too large.
const PAGE_KEYS: usize = 1_000;
/// The largest answer that is taken, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How often a range is read from its beginning because its revision was compacted meanwhile.
const RANGE_ATTEMPTS: u32 = 3;
/// After this time without a byte a ping is sent on a connection, which is closed if it is not
/// answered within [`KEEP_ALIVE_TIMEOUT`].
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(3);

/// How etcd is reached, and as which user.
#[derive(Clone)]
pub struct EtcdOptions {
    /// Its members, as `http://host:port` or `https://host:port`.
    pub endpoints: Vec<String>,
    /// The prefix of every key. Several cells may share one etcd with different roots.
    pub root: String,
    /// Name and password, where etcd requires them.
    pub user: Option<(String, String)>,
    /// Certificates for `https`.
    pub tls: Option<TlsOptions>,
    /// How long a call may take.
    pub request_timeout: Duration,
}

impl EtcdOptions {
    /// The default of [`EtcdOptions::request_timeout`].
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

    fn connect_options(&self) -> ConnectOptions {
        let options = ConnectOptions::new()
            .with_connect_timeout(self.request_timeout)
            .with_keep_alive(KEEP_ALIVE, KEEP_ALIVE_TIMEOUT)
            // etcd closes connections that ping more often, or while no call is under way.
            .with_keep_alive_while_idle(false)
            // A member that has lost the others returns an error, instead of a watch that waits for
            // ever.
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        let options = match &self.user {
            Some((name, password)) => options.with_user(name, password),
            None => options,
        };
        match &self.tls {
            Some(tls) => options.with_tls(tls.clone()),
            None => options,
        }
    }
}

/// A handle of a store; clones share its connections.
#[derive(Clone)]
pub struct EtcdStore {
    members: Arc<Members>,
    root: Arc<str>,
}

impl EtcdStore {
    /// Connects to etcd, and reads from it once.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] where the options name nothing that can be reached,
    /// [`MetadataError::Unavailable`] where etcd does not answer or does not know the user.
    pub async fn open(options: EtcdOptions) -> Result<Self, MetadataError> {
        let root = options.root.as_str().into();
        let store = Self { members: Arc::new(Members::new(options)?), root };
        store.probe().await?;
        Ok(store)
    }

    /// Checks that etcd answers. An answer that this user may not read the key is one, too.
    async fn probe(&self) -> Result<(), MetadataError> {
        match self.members.look(&self.root, 0).await {
            Ok(()) => Ok(()),
            Err(Failure::Denied(reason)) if reason.contains("permission denied") => Ok(()),
            Err(failure) => Err(failure.of_read()),
        }
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.root)
    }

    async fn ask(&self, key: String, options: GetOptions) -> Result<GetResponse, Failure> {
        let asking = self.members.call(Changes::Nothing, |mut kv| {
            let (key, options) = (key.clone(), options.clone());
            async move { kv.get(key, Some(options)).await }
        });
        asking.await
    }

    /// Reads a range at one revision, in as many requests as that needs.
    async fn pages(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, Failure> {
        let end = end_of(prefix);
        // The next key behind a key is the same with a zero byte added.
        let mut start = match after {
            Some(after) if after >= prefix => format!("{after}\0"),
            _ => first_of(prefix).to_owned(),
        };
        let mut page = Page { entries: Vec::new(), revision: 0, more: false };
        let mut keys = PAGE_KEYS;
        loop {
            // One key more than the limit shows whether more follow.
            let missing = limit.saturating_add(1) - page.entries.len();
            let asked = missing.min(keys);
            let options = GetOptions::new()
                .with_range(end.clone())
                .with_limit(signed(asked))
                .with_revision(signed(page.revision));
            let mut answer = match self.ask(start.clone(), options).await {
                Err(Failure::TooLarge(_)) if keys > 1 => {
                    keys /= 2;
                    continue;
                }
                answer => answer?,
            };
            if page.revision == 0 {
                page.revision = revision_of(answer.header())?;
            }
            for pair in answer.take_kvs() {
                page.entries.push(self.entry(pair)?);
            }
            match page.entries.last() {
                Some(last) if answer.more() && page.entries.len() <= limit => {
                    start = format!("{}\0", self.key(&last.key));
                }
                _ => break,
            }
        }
        page.more = page.entries.len() > limit;
        page.entries.truncate(limit);
        Ok(page)
    }

    fn entry(&self, pair: KeyValue) -> Result<Entry, Failure> {
        let revision = unsigned(pair.mod_revision())?;
        let (key, value) = pair.into_key_value();
        let key = key_in(&self.root, &key)?;
        Ok(Entry { key, value: value.into(), revision })
    }

    async fn run(&self, transaction: &Transaction) -> Result<u64, MetadataError> {
        if self.members.is_away() {
            // A call that waits for a connection may be sent at the moment when it is given up, and
            // then its outcome is unknown. So a write begins only once there is a connection.
            self.probe().await?;
        }
        let request = self.request(transaction);
        let answer = self.members.call(Changes::Something, |mut kv| {
            let request = request.clone();
            async move { kv.txn(request).await }
        });
        let answer = answer.await.map_err(Failure::of_commit)?;
        if !answer.succeeded() {
            let key = unexpected_key(transaction, &answer);
            return Err(MetadataError::Conflict { key });
        }
        let changed = transaction.writes.iter().any(|write| matches!(write, Write::Put { .. }))
            || answer
                .op_responses()
                .iter()
                .any(|one| matches!(one, TxnOpResponse::Delete(deleted) if deleted.deleted() > 0));
        // The transaction is committed, so an answer that cannot be read is an unknown outcome and
        // not a failure.
        let revision = revision_of(answer.header()).map_err(Failure::of_commit)?;
        Ok(if changed { revision } else { 0 })
    }

    fn request(&self, transaction: &Transaction) -> Txn {
        let conditions: Vec<_> = transaction
            .compares
            .iter()
            .map(|compare| {
                let key = self.key(&compare.key);
                match compare.expected {
                    Expected::Absent => Condition::create_revision(key, CompareOp::Equal, 0),
                    Expected::Present => Condition::create_revision(key, CompareOp::Greater, 0),
                    // No existing key has revision 0, and etcd reports 0 for one that does not
                    // exist.
                    Expected::Revision(0) => Condition::create_revision(key, CompareOp::Less, 0),
                    Expected::Revision(revision) => {
                        Condition::mod_revision(key, CompareOp::Equal, signed(revision))
                    }
                }
            })
            .collect();
        let writes: Vec<_> = transaction
            .writes
            .iter()
            .map(|write| match write {
                Write::Put { key, value } => TxnOp::put(self.key(key), value.clone(), None),
                Write::Delete { key } => TxnOp::delete(self.key(key), None),
            })
            .collect();
        let looks: Vec<_> = transaction
            .compares
            .iter()
            .map(|compare| {
                let options = GetOptions::new().with_keys_only();
                TxnOp::get(self.key(&compare.key), Some(options))
            })
            .collect();
        Txn::new().when(conditions).and_then(writes).or_else(looks)
    }
}

#[async_trait]
impl MetadataStore for EtcdStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, MetadataError> {
        check_key(key)?;
        let answer = self.ask(self.key(key), GetOptions::new()).await;
        let mut answer = answer.map_err(Failure::of_read)?;
        let pair = answer.take_kvs().into_iter().next();
        pair.map(|pair| self.entry(pair)).transpose().map_err(Failure::of_read)
    }

    async fn range(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, MetadataError> {
        let (prefix, after) = (self.key(prefix), after.map(|after| self.key(after)));
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.pages(&prefix, after.as_deref(), limit).await {
                Err(Failure::Compacted) if attempt < RANGE_ATTEMPTS => {}
                // A range has no history of its own to fall out of.
                Err(Failure::Compacted) => {
                    let reason = "compacted faster than a range can be read".to_owned();
                    return Err(MetadataError::Unavailable(reason));
                }
                page => return page.map_err(Failure::of_read),
            }
        }
    }

    async fn commit(&self, transaction: Transaction) -> Result<u64, MetadataError> {
        transaction.check()?;
        if transaction.compares.is_empty() && transaction.writes.is_empty() {
            return Ok(0);
        }
        self.run(&transaction).await
    }

    async fn watch(
        &self,
        prefix: &str,
        after_revision: u64,
    ) -> Result<Box<dyn Watch>, MetadataError> {
        let (members, root) = (Arc::clone(&self.members), Arc::clone(&self.root));
        let watch = EtcdWatch::open(members, root, self.key(prefix), after_revision);
        Ok(Box::new(watch.await?))
    }
}

/// The first key that is not as a compare expects it, by what the failed transaction read.
fn unexpected_key(transaction: &Transaction, answer: &TxnResponse) -> String {
    let seen = answer.op_responses();
    let mut seen = seen.iter().map(|response| match response {
        TxnOpResponse::Get(range) => range.kvs().first().map(KeyValue::mod_revision),
        _ => None,
    });
    let wrong = transaction.compares.iter().find(|compare| {
        let revision = seen.next().flatten();
        match compare.expected {
            Expected::Absent => revision.is_some(),
            Expected::Present => revision.is_none(),
            Expected::Revision(expected) => revision != Some(signed(expected)),
        }
    });
    wrong.map(|compare| compare.key.clone()).unwrap_or_default()
}

/// The first key of a range with `prefix` in etcd's form, where no key is empty.
fn first_of(prefix: &str) -> &str {
    if prefix.is_empty() { "\0" } else { prefix }
}

/// The end of the range of keys that start with `prefix` in etcd's form, where `\0` is no end.
fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

fn key_in(root: &str, key: &[u8]) -> Result<String, Failure> {
    let key = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(root));
    key.map(str::to_owned).ok_or_else(|| Failure::Corrupt("a key that is no text".to_owned()))
}

fn revision_of(header: Option<&etcd_client::ResponseHeader>) -> Result<u64, Failure> {
    let header = header.ok_or_else(|| Failure::Corrupt("an answer without a header".to_owned()))?;
    unsigned(header.revision())
}

fn unsigned(revision: i64) -> Result<u64, Failure> {
    u64::try_from(revision).map_err(|_| Failure::Corrupt(format!("revision {revision}")))
}

/// A number as etcd's i64; a larger one becomes the largest.
fn signed(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn no_answer(limit: Duration) -> String {
    format!("etcd did not answer within {} ms", limit.as_millis())
}
