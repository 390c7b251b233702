//! The HTTP client of all requests to S3: it adds headers, bounds the time until an answer begins,
//! and keeps the rests that the store asks for.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use parking_lot::Mutex;
use reqwest::header::{HeaderValue, IF_NONE_MATCH, RETRY_AFTER};
use tokio::time::{Instant, sleep_until, timeout};

use freshet_world::env::store::StoreMetrics;

/// A read whose answer has not begun after this time is repeated. A write takes as long as sending
/// its body does.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// The longest rest that is kept for a store, whatever it asks for.
const REST_MAX: Duration = Duration::from_secs(10);
/// The statuses by which a store says that it is too busy. Other statuses from 500 on are failures.
const TOO_BUSY: [u16; 2] = [429, 503];

/// Makes the client that all requests of a store go through.
#[derive(Debug)]
pub(super) struct Connector {
    metrics: StoreMetrics,
}

impl Connector {
    pub(super) fn new(metrics: StoreMetrics) -> Self {
        Self { metrics }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        let (metrics, rest_until) = (self.metrics.clone(), Arc::default());
        Ok(HttpClient::new(Way { client, metrics, rest_until }))
    }
}

#[derive(Debug)]
struct Way {
    client: HttpClient,
    metrics: StoreMetrics,
    /// Until when no request is sent, because the store asked for a rest.
    rest_until: Arc<Mutex<Option<Instant>>>,
}

impl Way {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if !request.method().is_safe() {
            return self.client.execute(request).await;
        }
        let answered = timeout(SILENCE_MAX, self.client.execute(request)).await;
        answered.unwrap_or_else(|silence| Err(HttpError::new(HttpErrorKind::Timeout, silence)))
    }

    async fn rest(&self) {
        let until = *self.rest_until.lock();
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }

    /// Notes whether an answer asks for fewer requests.
    fn heed(&self, answer: &HttpResponse) {
        let status = answer.status().as_u16();
        if TOO_BUSY.contains(&status) {
            self.metrics.throttled.inc();
        }
        let Some(rest) = answer.headers().get(RETRY_AFTER).and_then(parse_seconds) else { return };
        let until = Instant::now() + rest.min(REST_MAX);
        let mut rest_until = self.rest_until.lock();
        *rest_until = Some(rest_until.map_or(until, |other| other.max(until)));
    }
}

fn parse_seconds(value: &HeaderValue) -> Option<Duration> {
    value.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[async_trait]
impl HttpService for Way {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.rest().await;
        let query = request.uri().query().unwrap_or_default();
        let completes = query.split('&').any(|option| option.starts_with("uploadId="));
        if request.method() == "POST" && completes {
            // The store completes the upload only where its key is new.
            request.headers_mut().insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = self.send(request).await;
        match &answer {
            Ok(answer) => {
                let status = answer.status();
                self.heed(answer);
                if status.is_server_error() || TOO_BUSY.contains(&status.as_u16()) {
                    tracing::debug!(
                        %method, path, %status,
                        "a request to the object store failed and may be repeated"
                    );
                }
            }
            Err(error) => {
                tracing::debug!(
                    %method, path, %error,
                    "a request to the object store failed and may be repeated"
                );
            }
        }
        answer
    }
}
