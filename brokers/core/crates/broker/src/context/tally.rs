//! Counts the bytes of a request and of its answer, whatever becomes of them.

use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;
use parking_lot::Mutex;

use freshet_quota::exchange::Exchange;
use freshet_quota::unbilled::UnbilledAccount;
use freshet_telemetry::Metrics;
use freshet_telemetry::traffic::Use;

/// The kind of throttling that bounds what nobody is billed for, as metrics name it.
const UNBILLED: &str = "unbilled";
/// Bytes of the length before a frame.
const LENGTH_BYTES: usize = 4;

/// The bytes of one request and its answer. What is not billed is taken from the principal's share
/// as soon as it is known, and of a request that is never answered when this is dropped.
pub struct Tally {
    /// Where it is counted.
    metrics: Arc<Metrics>,
    /// From where is taken what nobody is billed for; `None` for all that the service sends.
    pub(crate) account: Option<Arc<UnbilledAccount>>,
    /// Who pays for the request.
    pub(crate) payer: Arc<str>,
    /// The client id in the request's header.
    pub(crate) client_id: StrBytes,
    /// Whether batches of the request are billed: not those of the service itself.
    pub(crate) is_billed: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    exchange: Exchange,
    /// How many bytes were taken from the share.
    taken: usize,
}

impl Tally {
    /// That of a request of `frame_bytes` without its length.
    pub(crate) fn new(metrics: &Arc<Metrics>, payer: &Arc<str>, frame_bytes: usize) -> Self {
        let request = frame_bytes + LENGTH_BYTES;
        let exchange = Exchange { request, ..Exchange::default() };
        Self {
            metrics: Arc::clone(metrics),
            account: None,
            payer: Arc::clone(payer),
            client_id: StrBytes::default(),
            is_billed: true,
            state: Mutex::new(State { exchange, taken: 0 }),
        }
    }

    /// Notes how many bytes of batches the request had stored. Returns for how many milliseconds
    /// its client is to pause; its connection is not read for that long.
    pub(crate) fn stored(&self, bytes: usize) -> i32 {
        let billed = if self.is_billed { bytes } else { 0 };
        self.count(|exchange| exchange.billed = billed)
    }

    /// Notes an answer of this length, as [`Tally::stored`] does.
    pub(crate) fn answered(&self, bytes: usize) -> i32 {
        self.count(|exchange| exchange.answer = bytes)
    }

    /// Notes an answer of this length with as many bytes of records, as [`Tally::stored`] does.
    pub(crate) fn handed(&self, bytes: usize, records: usize) -> i32 {
        let billed = if self.is_billed { records } else { 0 };
        self.count(|exchange| (exchange.answer, exchange.billed) = (bytes, billed))
    }

    fn count(&self, change: impl FnOnce(&mut Exchange)) -> i32 {
        let more = {
            let mut state = self.state.lock();
            change(&mut state.exchange);
            let counted = state.exchange.counted();
            let more = counted.saturating_sub(state.taken);
            state.taken += more;
            more
        };
        let Some(account) = &self.account else { return 0 };
        let pause_ms = super::request::milliseconds(account.take(more));
        if pause_ms > 0 {
            self.metrics.throttled(UNBILLED, u64::from(pause_ms.unsigned_abs()));
        }
        pause_ms
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.count(|_| {});
        let unbilled = self.state.get_mut().exchange.unbilled() as u64;
        let used = Use { unbilled, ..Use::default() };
        self.metrics.traffic.add(&self.payer, &self.client_id, &used);
        self.metrics.unbilled.inc_by(unbilled);
    }
}
