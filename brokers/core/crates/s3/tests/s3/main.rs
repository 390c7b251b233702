//! S3: the conformance of all object stores, large objects, many names, and a connection that
//! fails.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test may fail by a panic")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use freshet_world::env::files::write_private;
use freshet_world::env::store::{ObjectStore, StoreError};

use freshet_world::sim::conformance::{a_put_has_one_winner, conformance};

use server::{Fault, open, shared};

mod server;

/// More than one request takes, in pieces that do not fall together with parts.
fn large(first: u8) -> Vec<Bytes> {
    (0..21).map(|n| Bytes::from(vec![first + n; (1 << 20) + 1])).collect()
}

#[tokio::test]
async fn s3_conforms() {
    let bucket = shared().bucket().await;
    conformance(bucket.store("").as_ref()).await;
    conformance(bucket.store("cell/one").as_ref()).await;
    a_put_has_one_winner(bucket.store("")).await;
}

#[tokio::test]
async fn a_prefix_is_a_bucket_of_its_own() {
    let bucket = shared().bucket().await;
    bucket.store("one").put_new("c/k", vec![Bytes::from_static(b"x")]).await.unwrap();
    assert_eq!(bucket.store("").get("one/c/k").await.unwrap(), "x");
    assert_eq!(bucket.store("").list("one").await.unwrap(), ["c"]);
    let other = bucket.store("two").get("c/k").await;
    assert!(matches!(other, Err(StoreError::NotFound(_))), "{other:?}");
}

#[tokio::test]
async fn a_large_object_is_put_in_parts_and_once() {
    let bucket = shared().bucket().await;
    let store = bucket.store("");
    let (one, two) = (large(1), large(101));
    let put = |pieces: &[Bytes]| store.put_new("c/large", pieces.to_vec());
    let (first, second) = tokio::join!(put(&one), put(&two));
    let winner = match (&first, &second) {
        (Ok(()), Err(StoreError::Exists(_))) => one.concat(),
        (Err(StoreError::Exists(_)), Ok(())) => two.concat(),
        both => panic!("{both:?}"),
    };
    assert!(store.get("c/large").await.unwrap() == winner);
    let again = put(&one).await;
    assert!(matches!(again, Err(StoreError::Exists(_))), "{again:?}");
    let (position, length) = ((8 << 20) - 3, 7);
    let range = store.get_range("c/large", position as u64, length as u64).await.unwrap();
    assert_eq!(range, winner[position..position + length]);
}

#[tokio::test]
async fn names_beyond_a_page_are_listed() {
    let bucket = shared().bucket().await;
    let store = bucket.store("");
    let mut expected = Vec::new();
    for name in 0..1_005 {
        let name = format!("{name:04}");
        store.put_new(&format!("c/many/{name}"), vec![Bytes::new()]).await.unwrap();
        expected.push(name);
    }
    assert_eq!(store.list("c/many").await.unwrap(), expected);
}

#[tokio::test]
async fn a_busy_store_is_asked_again() {
    let bucket = shared().bucket().await;
    let (store, faults) = bucket.behind_faults().await;
    let busy = [Fault::Status(503), Fault::Status(429), Fault::Status(500)];
    for method in ["PUT", "GET", "DELETE"] {
        faults.plan(method, &busy);
        match method {
            "PUT" => store.put_new("c/k", vec![Bytes::from_static(b"value")]).await.unwrap(),
            "GET" => assert_eq!(store.get("c/k").await.unwrap(), "value"),
            _ => store.delete("c/k").await.unwrap(),
        }
        let asked = faults.asked();
        assert_eq!(asked.len(), busy.len() + 1, "{asked:?}");
    }
    faults.plan("GET", &busy);
    assert_eq!(store.list("c").await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_rest_that_the_store_asks_for_is_kept_by_every_request() {
    let bucket = shared().bucket().await;
    let (store, faults) = bucket.behind_faults().await;
    store.put_new("c/k", vec![Bytes::from_static(b"value")]).await.unwrap();
    faults.plan("GET", &[Fault::Rest(1)]);
    let begun = tokio::time::Instant::now();
    let (value, ()) = tokio::join!(store.get("c/k"), async {
        while store.metrics().unwrap().throttled.get() == 0 {
            tokio::task::yield_now().await;
        }
        store.delete("c/other").await.unwrap();
    });
    assert_eq!(value.unwrap(), "value");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(store.metrics().unwrap().hedges.get(), 0, "a busy store is not asked twice");
}

#[tokio::test]
async fn a_read_that_is_not_answered_is_asked_again() {
    let bucket = shared().bucket().await;
    let (store, faults) = bucket.behind_faults().await;
    store.put_new("c/k", vec![Bytes::from_static(b"value")]).await.unwrap();
    faults.asked();
    faults.plan("GET", &[Fault::Silence]);
    assert_eq!(store.get_range("c/k", 1, 3).await.unwrap(), "alu");
    assert_eq!(faults.asked().len(), 2);
    let metrics = store.metrics().unwrap();
    assert_eq!((metrics.hedges.get(), metrics.hedges_won.get()), (1, 1));
}

#[tokio::test]
async fn a_store_that_stays_busy_is_unavailable() {
    let bucket = shared().bucket().await;
    let (store, faults) = bucket.behind_faults().await;
    // As often as it is tried, and as it is looked whether it was done after all.
    faults.plan("", &[Fault::Status(503); 14]);
    let put = store.put_new("c/k", vec![Bytes::from_static(b"value")]).await;
    assert!(matches!(&put, Err(StoreError::Unavailable(why)) if why.contains("503")), "{put:?}");
    faults.asked();
    store.put_new("c/k", vec![Bytes::from_static(b"value")]).await.unwrap();
}

#[tokio::test]
async fn a_put_whose_answer_was_lost_succeeded() {
    let bucket = shared().bucket().await;
    let (store, faults) = bucket.behind_faults().await;
    let value = vec![Bytes::from_static(b"value")];
    faults.plan("PUT", &[Fault::LoseAnswer]);
    store.put_new("c/small", value.clone()).await.unwrap();
    // Begin, two parts or more, end: each loses its first answer.
    for (method, part) in [("POST", "uploads"), ("PUT", "partNumber=2"), ("POST", "uploadId")] {
        let key = format!("c/{method}-{part}");
        faults.plan(part, &[Fault::LoseAnswer]);
        store.put_new(&key, large(1)).await.unwrap();
        assert!(store.get(&key).await.unwrap() == large(1).concat(), "{key}");
        faults.asked();
    }
    // Another's object is never taken for one's own.
    faults.plan("PUT", &[Fault::Status(503)]);
    let taken = store.put_new("c/small", value).await;
    assert!(matches!(taken, Err(StoreError::Exists(_))), "{taken:?}");
}

#[tokio::test]
async fn what_is_refused_once_and_not_there_is_put_again() {
    let bucket = shared().bucket().await;
    let (store, faults) = bucket.behind_faults().await;
    // Amazon's answers where another put or a removal of the key is under way.
    faults.plan("PUT", &[Fault::Status(409), Fault::Status(412)]);
    store.put_new("c/k", vec![Bytes::from_static(b"value")]).await.unwrap();
    faults.asked();
    assert_eq!(store.get("c/k").await.unwrap(), "value");
}

#[tokio::test]
async fn an_answer_that_is_cut_is_read_again() {
    let bucket = shared().bucket().await;
    let (store, faults) = bucket.behind_faults().await;
    let value = Bytes::from(vec![7; 3 << 20]);
    store.put_new("c/k", vec![value.clone()]).await.unwrap();
    faults.plan("GET", &[Fault::CutAnswer]);
    assert!(store.get("c/k").await.unwrap() == value);
    faults.plan("GET", &[Fault::CutAnswer, Fault::CutAnswer]);
    let range = store.get_range("c/k", 1, (3 << 20) - 1).await.unwrap();
    assert!(range == value.slice(1..));
    faults.asked();
}

#[tokio::test]
async fn a_part_that_cannot_be_put_leaves_no_upload_behind() {
    let bucket = shared().bucket().await;
    let (store, faults) = bucket.behind_faults().await;
    faults.plan("partNumber=2", &[Fault::Status(400)]);
    let put = store.put_new("c/large", large(1)).await;
    assert!(matches!(put, Err(StoreError::Unavailable(_))), "{put:?}");
    let asked = faults.asked();
    let aborted = |line: &String| line.starts_with("DELETE") && line.contains("uploadId");
    assert!(asked.iter().any(aborted), "{asked:?}");
    assert!(matches!(store.get("c/large").await, Err(StoreError::NotFound(_))));
}

#[tokio::test]
async fn a_key_that_is_replaced_is_used() {
    let bucket = shared().bucket().await;
    let store: Arc<dyn ObjectStore> = bucket.store("");
    let right = tokio::fs::read(&bucket.key_file).await.unwrap();
    let wrong = String::from_utf8(right.clone()).unwrap().replace("freshet-secret", "guessed");
    write_private(&bucket.key_file, wrong.into()).await.unwrap();
    let refused = store.get("c/k").await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    write_private(&bucket.key_file, right).await.unwrap();
    let read_again = async {
        while matches!(store.get("c/k").await, Err(StoreError::Unavailable(_))) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), read_again).await.unwrap();
    store.put_new("c/k", vec![Bytes::from_static(b"x")]).await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_not_there_is_unavailable() {
    let bucket = shared().bucket().await;
    let key_file = bucket.key_file.display();
    // Nobody listens on a port that was given and taken back.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = open(&format!("s3://b?endpoint=http://{gone}&key_file={key_file}"));
    let read = store.get("c/k").await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
}
