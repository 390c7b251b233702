// The scenario of tests/clients/by_time by KafkaJS.

import kafkajs from "kafkajs";

const { CompressionTypes, Kafka, logLevel } = kafkajs;

/** Never reached when all is well. */
const LIMIT_MS = 60_000;

const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP };

/** Sends the batches, each as one batch of the log, and returns the offsets of all records. */
async function produce(kafka, topic, { codec, batches }) {
  const producer = kafka.producer();
  await producer.connect();
  const offsets = [];
  for (const batch of batches) {
    const messages = batch.map((record) => ({
      key: record.key,
      value: record.value,
      timestamp: String(record.timestamp),
    }));
    const [sent] = await producer.send({ topic, messages, acks: -1, compression: CODECS[codec] });
    messages.forEach((_, n) => offsets.push(Number(sent.baseOffset) + n));
  }
  await producer.disconnect();
  return { offsets };
}

/** Returns the offsets of the first records at or after times, or the end of the log. */
async function offsets(kafka, topic, { times }) {
  const admin = kafka.admin();
  await admin.connect();
  const answers = [];
  for (const time of times) {
    const [{ offset }] = await admin.fetchTopicOffsetsByTimestamp(topic, time);
    answers.push(Number(offset));
  }
  await admin.disconnect();
  return { offsets: answers };
}

/** Moves a member of the group to the first record at or after a time, and reads from there. */
async function reset(kafka, topic, { group, time, count }) {
  const admin = kafka.admin();
  await admin.connect();
  const [{ partition, offset }] = await admin.fetchTopicOffsetsByTimestamp(topic, time);
  await admin.disconnect();
  // Its end waits for the fetch that is under way, 5 s by default.
  const consumer = kafka.consumer({ groupId: group, maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topic });
  // A member that joins again, as when the coordinator was loading, has lost its place.
  consumer.on(consumer.events.GROUP_JOIN, () => consumer.seek({ topic, partition, offset }));
  const records = [];
  await new Promise((resolve, reject) => {
    const run = consumer.run({
      eachMessage: async ({ message }) => {
        records.push({
          offset: Number(message.offset),
          timestamp: Number(message.timestamp),
          key: message.key.toString(),
          value: message.value.toString(),
        });
        if (records.length === count) resolve();
      },
    });
    run.catch(reject);
    setTimeout(() => reject(new Error(`${records.length} of ${count} records`)), LIMIT_MS).unref();
  });
  await consumer.disconnect();
  return { records: records.slice(0, count) };
}

const STEPS = { produce, offsets, reset };

const [bootstrap, topic, step, details] = process.argv.slice(2);
if (!details || !Object.hasOwn(STEPS, step)) {
  console.error("arguments: BOOTSTRAP TOPIC produce|offsets|reset DETAILS");
  process.exit(1);
}
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR });
try {
  console.log(JSON.stringify(await STEPS[step](kafka, topic, JSON.parse(details))));
} catch (error) {
  console.error(error);
  process.exit(1);
}
