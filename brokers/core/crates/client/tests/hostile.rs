//! A server that answers junk, announces much, says nothing or hangs up: each costs one call,
//! within its deadline, and little memory.
#![allow(clippy::unwrap_used, reason = "tests may unwrap")]

use std::sync::Arc;
use std::time::Duration;

use freshet_access::sasl::Mechanism;
use freshet_client::{ClientError, ClusterClient, Login, Memory};
use freshet_world::env::real::{SystemRandomness, Tcp};
use freshet_world::env::{Network, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

/// The versions of the APIs that the tests use, as an ApiVersions answer of version 0.
fn api_versions() -> Vec<u8> {
    let apis: [(i16, i16); 5] = [(3, 12), (16, 5), (17, 1), (18, 4), (36, 2)];
    let mut body = 0_i16.to_be_bytes().to_vec();
    body.extend(i32::try_from(apis.len()).unwrap().to_be_bytes());
    for (api, newest) in apis {
        for number in [api, 0, newest] {
            body.extend(number.to_be_bytes());
        }
    }
    body
}

/// What the server does once a client has logged in.
type Behaviour = fn(i32) -> Answer;

enum Answer {
    /// Sends these bytes, and keeps the connection.
    Bytes(Vec<u8>),
    /// Says nothing.
    Nothing,
    /// Closes the connection.
    End,
}

fn frame(number: i32, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(4 + body.len()).unwrap();
    [&length.to_be_bytes()[..], &number.to_be_bytes(), body].concat()
}

async fn serve(mut stream: Box<dyn Stream>, behaviour: Behaviour) -> std::io::Result<()> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length).await?;
        let mut request = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        stream.read_exact(&mut request).await?;
        let api = i16::from_be_bytes([request[0], request[1]]);
        let number = i32::from_be_bytes(request[4..8].try_into().unwrap());
        let answer = match api {
            18 => Answer::Bytes(frame(number, &api_versions())),
            17 => Answer::Bytes(frame(number, &[0; 6])),
            // No error, no message, no token, a lifetime.
            36 => {
                Answer::Bytes(frame(number, &[0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
            }
            _ => behaviour(number),
        };
        match answer {
            Answer::Bytes(bytes) => stream.write_all(&bytes).await?,
            Answer::Nothing => std::future::pending().await,
            Answer::End => return Ok(()),
        }
    }
}

async fn client_of(behaviour: Behaviour) -> ClusterClient {
    let mut listener = Tcp.listen("127.0.0.1:0").await.unwrap();
    let address = listener.local_address().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, behaviour));
        }
    });
    client_at(vec![address])
}

fn client_at(bootstrap: Vec<String>) -> ClusterClient {
    let login = Login {
        user: "u".to_owned(),
        password: "p".to_owned(),
        mechanism: Mechanism::Plain,
        client_id: "test".to_owned(),
    };
    let randomness = Arc::new(SystemRandomness::open().unwrap());
    ClusterClient::new(bootstrap, login, &Memory::default(), Arc::new(Tcp), randomness)
}

async fn list(client: &ClusterClient, limit: Duration) -> ClientError {
    client.list_groups(Instant::now() + limit).await.unwrap_err()
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn junk_is_undecodable() {
    let answers: [Behaviour; 5] = [
        |number| Answer::Bytes(frame(number, &[0xff; 40])),
        |number| Answer::Bytes(frame(number, &[])),
        |number| Answer::Bytes(frame(number + 1, &[0; 40])),
        // An array of 2 billion brokers.
        |number| Answer::Bytes(frame(number, &[0, 0, 0, 0, 0, 255, 255, 255, 255, 7])),
        |_| Answer::Bytes((-5_i32).to_be_bytes().to_vec()),
    ];
    for behaviour in answers {
        let client = client_of(behaviour).await;
        assert!(matches!(list(&client, LONG).await, ClientError::Undecodable { .. }));
        assert_eq!(client.idle_connections(), 0, "nobody knows what such a connection says next");
    }
}

#[tokio::test]
async fn a_length_that_is_announced_is_refused_or_waited_for_without_memory() {
    let client = client_of(|_| Answer::Bytes(i32::MAX.to_be_bytes().to_vec())).await;
    assert!(matches!(list(&client, LONG).await, ClientError::Undecodable { .. }));
    // As much as is read, and then nothing: the deadline ends it.
    let client = client_of(|_| Answer::Bytes((16_i32 << 20).to_be_bytes().to_vec())).await;
    assert_eq!(list(&client, SHORT).await, ClientError::TimedOut);
}

#[tokio::test]
async fn silence_costs_the_calls_time() {
    let client = client_of(|_| Answer::Nothing).await;
    assert_eq!(list(&client, SHORT).await, ClientError::TimedOut);
    assert_eq!(client.idle_connections(), 0);
}

#[tokio::test]
async fn a_server_that_hangs_up_is_unreachable() {
    let client = client_of(|_| Answer::End).await;
    let ClientError::Unreachable { reason, .. } = list(&client, LONG).await else {
        panic!("another error")
    };
    assert_eq!(reason, "the broker closed the connection");
}

#[tokio::test]
async fn a_refused_connection_is_unreachable_and_another_address_is_tried() {
    let listener = Tcp.listen("127.0.0.1:0").await.unwrap();
    let closed = listener.local_address().to_string();
    drop(listener);
    let gone = client_at(vec![closed.clone()]);
    assert!(matches!(list(&gone, LONG).await, ClientError::Unreachable { .. }));

    let mut listener = Tcp.listen("127.0.0.1:0").await.unwrap();
    let both = client_at(vec![closed, listener.local_address().to_string()]);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        // Metadata: no brokers, no cluster id, no controller, no topics.
        serve(stream, |number| {
            Answer::Bytes(frame(number, &[0, 0, 0, 0, 0, 1, 0, 255, 255, 255, 255, 1, 0]))
        })
        .await
    });
    assert_eq!(both.list_groups(Instant::now() + LONG).await, Ok(Vec::new()));
    assert_eq!(both.idle_connections(), 1);
}

#[tokio::test]
async fn calls_of_one_cluster_wait_for_nothing_of_another() {
    let silent = client_of(|_| Answer::Nothing).await;
    let junk = client_of(|number| Answer::Bytes(frame(number, &[0xff; 40]))).await;
    let waiting = futures::future::join_all((0..40).map(|_| list(&silent, LONG)));
    tokio::select! {
        biased;
        _ = waiting => panic!("a silent server has answered"),
        error = list(&junk, LONG) => assert!(matches!(error, ClientError::Undecodable { .. })),
    }
}
