//! The scenario of `tests/clients/by_time` by the crate rdkafka, which brings its own librdkafka.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::{Value, json};

/// Never reached when all is well.
const LIMIT: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The topic, whose only partition is 0, and where it is.
struct Place {
    bootstrap: String,
    topic: String,
}

/// Offsets of the records that were delivered, in order, or what kept one from it.
#[derive(Clone, Default)]
struct Deliveries(Arc<Mutex<Vec<Result<i64, String>>>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, delivered: &DeliveryResult<'_>, (): ()) {
        let outcome = match delivered {
            Ok(message) => Ok(message.offset()),
            Err((error, _)) => Err(error.to_string()),
        };
        self.0.lock().expect("no delivery panics").push(outcome);
    }
}

impl Place {
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }

    /// Sends the batches, each as one batch of the log, and returns the offsets of all records.
    fn produce(&self, details: &Value) -> Outcome<Value> {
        let deliveries = Deliveries::default();
        let producer: BaseProducer<Deliveries> = self
            .config()
            .set("compression.type", text(&details["codec"])?)
            .set("linger.ms", "200") // all records before a flush in one batch
            .create_with_context(deliveries.clone())?;
        for batch in list(&details["batches"])? {
            for record in list(batch)? {
                let sent = BaseRecord::to(&self.topic)
                    .key(text(&record["key"])?)
                    .payload(text(&record["value"])?)
                    .timestamp(number(&record["timestamp"])?);
                producer.send(sent).map_err(|(error, _)| error)?;
            }
            producer.flush(LIMIT)?;
        }
        let delivered = deliveries.0.lock().expect("no delivery panics").clone();
        Ok(json!({ "offsets": delivered.into_iter().collect::<Result<Vec<_>, _>>()? }))
    }

    /// The offsets of the first records at or after times, `null` where the library says `End`.
    fn offsets(&self, details: &Value) -> Outcome<Value> {
        let consumer: BaseConsumer = self.config().create()?;
        let mut offsets = Vec::new();
        for time in list(&details["times"])? {
            offsets.push(match self.offset_at(&consumer, number(time)?)? {
                Offset::Offset(offset) => Some(offset),
                Offset::End => None,
                other => return Err(format!("{other:?}").into()),
            });
        }
        Ok(json!({ "offsets": offsets }))
    }

    fn offset_at(&self, consumer: &BaseConsumer, ms: i64) -> Outcome<Offset> {
        let times = self.at(Offset::Offset(ms))?;
        let listed = consumer.offsets_for_times(times, LIMIT)?;
        let listed = listed.find_partition(&self.topic, 0).ok_or("no answer for the partition")?;
        listed.error()?;
        Ok(listed.offset())
    }

    fn at(&self, offset: Offset) -> Outcome<TopicPartitionList> {
        let mut partitions = TopicPartitionList::new();
        partitions.add_partition_offset(&self.topic, 0, offset)?;
        Ok(partitions)
    }

    /// Commits the first offset at or after a time for the group, and reads from there as a member.
    fn reset(&self, details: &Value) -> Outcome<Value> {
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", text(&details["group"])?)
            .set("enable.auto.commit", "false")
            .create()?;
        let offset = self.offset_at(&consumer, number(&details["time"])?)?;
        consumer.commit(&self.at(offset)?, CommitMode::Sync)?;
        consumer.subscribe(&[&self.topic])?;
        let count = usize::try_from(number(&details["count"])?)?;
        let deadline = Instant::now() + LIMIT;
        let mut records = Vec::new();
        while records.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("{} of {count} records", records.len()).into());
            }
            // Also returns when the group has assigned the partition.
            let Some(message) = consumer.poll(left).transpose()? else { continue };
            records.push(json!({
                "offset": message.offset(),
                "timestamp": message.timestamp().to_millis(),
                "key": message.key_view::<str>().transpose()?,
                "value": message.payload_view::<str>().transpose()?,
            }));
        }
        Ok(json!({ "records": records }))
    }
}

fn text(value: &Value) -> Outcome<&str> {
    Ok(value.as_str().ok_or("a text is missing")?)
}

fn number(value: &Value) -> Outcome<i64> {
    Ok(value.as_i64().ok_or("a number is missing")?)
}

fn list(value: &Value) -> Outcome<&Vec<Value>> {
    Ok(value.as_array().ok_or("a list is missing")?)
}

fn run() -> Outcome<Value> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [bootstrap, topic, step, details] = arguments.try_into().map_err(|given: Vec<_>| {
        format!("arguments: BOOTSTRAP TOPIC produce|offsets|reset DETAILS, {} given", given.len())
    })?;
    let place = Place { bootstrap, topic };
    let details = serde_json::from_str(&details)?;
    match step.as_str() {
        "produce" => place.produce(&details),
        "offsets" => place.offsets(&details),
        "reset" => place.reset(&details),
        _ => Err(format!("there is no step {step}").into()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
