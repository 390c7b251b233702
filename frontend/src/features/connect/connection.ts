import type { Cluster, ListenerName } from "@/lib/api/types";
import type { FreshCredential } from "@/lib/freshCredentials";
import type { Connection } from "./snippets";

/** What the person chose on the page. The rest of a connection follows from the cluster. */
export interface Choice {
  listener?: ListenerName;
  topic?: string;
  caPath: string;
}

/** Returns the connection for the snippets. Without a credential it has placeholders. */
export function connectionOf(
  cluster: Pick<Cluster, "endpoints" | "bootstrap_servers">,
  topics: readonly string[],
  choice: Choice,
  fresh: FreshCredential | undefined,
): Connection {
  const chosen = cluster.endpoints.find((e) => e.listener === choice.listener);
  const endpoint = chosen ?? cluster.endpoints[0];
  return {
    listener: endpoint?.listener ?? "SASL_PLAINTEXT",
    bootstrapServers: endpoint?.bootstrap_servers ?? cluster.bootstrap_servers,
    username: fresh?.username ?? "USERNAME",
    password: fresh?.password ?? "PASSWORD",
    mechanism: fresh?.mechanism ?? "SCRAM-SHA-512",
    topic: choice.topic ?? topics[0] ?? "my-topic",
    caPath: choice.caPath,
  };
}
