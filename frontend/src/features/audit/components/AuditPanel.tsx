import { Stack } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { CopyText } from "@/components/CopyText";
import { Facts } from "@/components/Facts";
import { Instant } from "@/components/Moment";
import type { AuditEntry } from "@/lib/api/types";
import { changesOf } from "../changes";
import { actionWords, kindWords } from "../filter";

const SOURCES: Record<AuditEntry["source"], string> = {
  api: "REST interface",
  console: "Console",
  kafka: "Kafka protocol",
  system: "Freshet itself",
};

/** All of one entry, with links to similar entries. */
export function AuditPanel({ entry }: { entry: AuditEntry }): ReactElement {
  const { actor, target, request_id, address, detail } = entry;
  const changed = changesOf(detail)
    .filter(({ from }) => from !== undefined)
    .map(({ name, from, to }): [string, string] => [name, `${from ?? ""} → ${to}`]);
  return (
    <Stack gap="md">
      <Facts
        items={[
          ["Action", actionWords(entry.action)],
          ["Time", <Instant key="at" at={entry.created_at} />],
          [
            "By",
            <>
              {actor.name}, {kindWords(actor.kind)}
            </>,
          ],
          ["Id of who did it", <CopyText key="id" value={actor.id} what="the id" />],
          ["Through", SOURCES[entry.source]],
          ["From address", address || "–"],
          ["Target", `${target.type.replaceAll("_", " ")} ${target.name}`],
          ...(target.cluster ? ([["In cluster", target.cluster]] as [string, string][]) : []),
          ["Id of the target", <CopyText key="id" value={target.id} what="the target's id" />],
          [
            "Request",
            request_id === "-" ? (
              "–"
            ) : (
              <CopyText key="id" value={request_id} what="the request id" />
            ),
          ],
        ]}
      />
      {changed.length > 0 && (
        <div role="group" aria-label="What changed">
          <Facts items={changed} />
        </div>
      )}
      <CodeBlock title="Detail" code={JSON.stringify(detail, null, 2)} />
      <Link to="/audit" search={{ actor: actor.id }}>
        All by {actor.name}
      </Link>
      <Link to="/audit" search={{ target: target.id }}>
        All about this {target.type.replaceAll("_", " ")}
      </Link>
    </Stack>
  );
}
