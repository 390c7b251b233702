//! `/metrics`, `/healthz` and a broker's `/status` over HTTP/1.1.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use freshet_world::env::{Listener, Stream};

/// Connections at a time; more wait.
const CONNECTIONS_MAX: usize = 32;
/// The longest that a connection may last; a scrape takes milliseconds.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// How long the head of a request may take.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The pause after a connection could not be accepted.
const REST: Duration = Duration::from_millis(100);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// A process's metrics and health.
pub trait Exposed: Send + Sync + 'static {
    /// All metrics in the text format of OpenMetrics 1.0.
    fn metrics(&self) -> String;

    /// Checks that the process is healthy.
    ///
    /// # Errors
    /// A text that says what is wrong.
    fn health(&self) -> Result<(), String>;

    /// What a query asks of the status, as JSON; `None` where the process has no status.
    fn status(&self, _query: Option<&str>) -> Option<String> {
        None
    }
}

/// Serves until it is dropped.
pub async fn serve(mut listener: Box<dyn Listener>, exposed: Arc<dyn Exposed>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut tasks = JoinSet::new();
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let place = place.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                let exposed = Arc::clone(&exposed);
                tasks.spawn(async move {
                    let served = serve_connection(stream, exposed);
                    if timeout(CONNECTION_TIME, served).await.is_err() {
                        tracing::debug!("a connection for metrics took too long");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for metrics");
                sleep(REST).await;
            }
        }
        while tasks.try_join_next().is_some() {}
    }
}

async fn serve_connection(stream: Box<dyn Stream>, exposed: Arc<dyn Exposed>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (method, uri) = (request.method(), request.uri());
        let response = answer_request(method, uri.path(), uri.query(), exposed.as_ref());
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection for metrics failed");
    }
}

fn answer_request(
    method: &Method,
    path: &str,
    query: Option<&str>,
    exposed: &dyn Exposed,
) -> Response<Full<Bytes>> {
    let not_there = || text_response(StatusCode::NOT_FOUND, TEXT, "/metrics or /healthz\n".into());
    if method != Method::GET && method != Method::HEAD {
        let mut refused =
            text_response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET or HEAD\n".into());
        refused.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match path {
        "/metrics" => text_response(StatusCode::OK, OPEN_METRICS, exposed.metrics()),
        "/healthz" => match exposed.health() {
            Ok(()) => text_response(StatusCode::OK, TEXT, "ok\n".into()),
            Err(reason) => {
                text_response(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{reason}\n"))
            }
        },
        "/status" => match exposed.status(query) {
            Some(status) => text_response(StatusCode::OK, JSON, status),
            None => not_there(),
        },
        _ => not_there(),
    }
}

fn text_response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::super::{BrokerFigures, Metrics, Sample, StatusAnswer};
    use super::*;

    async fn get(method: Method, path: &str, well: bool) -> (StatusCode, String) {
        let sample: Sample =
            Arc::new(move |_| if well { Ok(()) } else { Err("stood down".to_owned()) });
        let status: StatusAnswer = Arc::new(|query| format!("{query:?}"));
        let figures = BrokerFigures { metrics: Arc::new(Metrics::new()), sample, status };
        let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
        let response = answer_request(&method, path, query, &figures);
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.into()).unwrap())
    }

    #[tokio::test]
    async fn health_says_what_is_wrong() {
        assert_eq!(get(Method::GET, "/healthz", true).await, (StatusCode::OK, "ok\n".into()));
        let (status, body) = get(Method::GET, "/healthz", false).await;
        assert_eq!((status, body.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "stood down\n"));
    }

    #[tokio::test]
    async fn metrics_are_there_even_when_the_broker_is_not_well() {
        let (status, body) = get(Method::GET, "/metrics", false).await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.ends_with("# EOF\n"));
    }

    #[tokio::test]
    async fn a_status_answers_the_query() {
        for (path, query) in
            [("/status", "None"), ("/status?since=7.1.2", r#"Some("since=7.1.2")"#)]
        {
            assert_eq!(get(Method::GET, path, false).await, (StatusCode::OK, query.to_owned()));
        }
    }

    #[tokio::test]
    async fn nothing_else_is_served() {
        assert_eq!(get(Method::GET, "/", true).await.0, StatusCode::NOT_FOUND);
        assert_eq!(get(Method::POST, "/metrics", true).await.0, StatusCode::METHOD_NOT_ALLOWED);
    }
}
