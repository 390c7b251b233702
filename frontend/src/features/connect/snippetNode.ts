import { literal } from "./quote";
import type { Block, Connection } from "./snippets";

/** Returns a program for Node.js with kafkajs. */
export function nodeSnippet(connection: Connection): Block[] {
  const { listener, bootstrapServers, username, password, mechanism, topic, caPath } = connection;
  const tls = listener === "SASL_SSL";
  const ssl = tls ? `\n  ssl: { ca: [readFileSync(${literal(caPath)})] },` : "";
  const imports = tls ? 'const { readFileSync } = require("node:fs");\n' : "";
  const brokers = bootstrapServers.split(",").map(literal).join(", ");
  const code = `${imports}const { Kafka } = require("kafkajs");

const kafka = new Kafka({
  clientId: "node",
  brokers: [${brokers}],${ssl}
  sasl: {
    mechanism: "${mechanism.toLowerCase()}",
    username: ${literal(username)},
    password: ${literal(password)},
  },
});
const topic = ${literal(topic)};

async function main() {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: [{ key: "greeting", value: "hello from Node.js" }] });
  await producer.disconnect();

  const consumer = kafka.consumer({ groupId: "node-group" });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      console.log(partition, message.offset, message.value?.toString());
    },
  });
}

main();
`;
  return [
    { title: "Install", code: "npm install kafkajs" },
    { title: "freshet.cjs", code },
    { title: "Run", code: "node freshet.cjs" },
  ];
}
