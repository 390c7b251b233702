import { literal } from "./quote";
import type { Block, Connection } from "./snippets";

/** Returns a program in Python with confluent-kafka. */
export function pythonSnippet(connection: Connection): Block[] {
  const { listener, bootstrapServers, username, password, mechanism, topic, caPath } = connection;
  const ca = listener === "SASL_SSL" ? `\n    "ssl.ca.location": ${literal(caPath)},` : "";
  const code = `from confluent_kafka import Consumer, Producer

config = {
    "bootstrap.servers": ${literal(bootstrapServers)},
    "security.protocol": "${listener}",
    "sasl.mechanism": "${mechanism}",
    "sasl.username": ${literal(username)},
    "sasl.password": ${literal(password)},${ca}
}
topic = ${literal(topic)}

producer = Producer(config)
producer.produce(topic, key="greeting", value="hello from Python")
producer.flush()

group = {"group.id": "python-group", "auto.offset.reset": "earliest"}
consumer = Consumer({**config, **group})
consumer.subscribe([topic])
try:
    while True:  # Ctrl-C ends it
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            raise SystemExit(message.error())
        print(message.partition(), message.offset(), message.value().decode(), flush=True)
except KeyboardInterrupt:
    pass
finally:
    consumer.close()
`;
  return [
    { title: "Install", code: "pip install confluent-kafka" },
    { title: "freshet.py", code },
    { title: "Run", code: "python freshet.py" },
  ];
}
