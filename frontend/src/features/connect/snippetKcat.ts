import { shellWord } from "./quote";
import type { Block, Connection } from "./snippets";

/** Returns two commands of kcat: one produces, one reads in a group. */
export function kcatSnippet(connection: Connection): Block[] {
  const { listener, bootstrapServers, username, password, mechanism, topic, caPath } = connection;
  const options = [
    `-X security.protocol=${listener}`,
    `-X sasl.mechanism=${mechanism}`,
    `-X sasl.username=${shellWord(username)}`,
    `-X sasl.password=${shellWord(password)}`,
  ];
  if (listener === "SASL_SSL") options.push(`-X ssl.ca.location=${shellWord(caPath)}`);
  const common = [`-b ${bootstrapServers}`, ...options].join(" \\\n  ");
  const name = shellWord(topic);
  return [
    {
      title: "Produce",
      code: `echo 'hello from kcat' | kcat -P -t ${name} \\\n  ${common}`,
    },
    {
      title: "Consume",
      code: `kcat ${common} \\\n  -X auto.offset.reset=earliest -G kcat-group ${name}`,
    },
  ];
}
