import { shellWord } from "./quote";
import type { Block, Connection } from "./snippets";

/** Escapes a value inside the double quotes of a JAAS line. */
const jaas = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');

function propertiesOf(connection: Connection): string {
  const { listener, bootstrapServers, username, password, mechanism, caPath } = connection;
  const login =
    mechanism === "PLAIN"
      ? "org.apache.kafka.common.security.plain.PlainLoginModule"
      : "org.apache.kafka.common.security.scram.ScramLoginModule";
  const user = `username="${jaas(username)}"`;
  const secret = `password="${jaas(password)}"`;
  const lines = [
    `bootstrap.servers=${bootstrapServers}`,
    `security.protocol=${listener}`,
    `sasl.mechanism=${mechanism}`,
    `sasl.jaas.config=${login} required ${user} ${secret};`,
  ];
  if (listener === "SASL_SSL") {
    lines.push("ssl.truststore.type=PEM", `ssl.truststore.location=${caPath}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Returns properties for any Java client, and commands of Apache Kafka's own tools with them. */
export function javaSnippet(connection: Connection): Block[] {
  const { bootstrapServers, topic } = connection;
  const where = `--bootstrap-server ${bootstrapServers} --topic ${shellWord(topic)}`;
  const produce = [
    "echo 'hello from Java' |",
    `kafka-console-producer.sh ${where} \\`,
    "--producer.config client.properties",
  ];
  const consume = [
    `kafka-console-consumer.sh ${where} \\`,
    "--consumer.config client.properties --group java-group --from-beginning",
  ];
  return [
    { title: "client.properties", code: propertiesOf(connection) },
    { title: "Produce", code: produce.join("\n  ") },
    { title: "Consume", code: consume.join("\n  ") },
  ];
}
