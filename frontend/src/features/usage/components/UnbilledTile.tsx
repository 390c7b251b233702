import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Tile } from "@/components/Tile";
import { formatBytes } from "@/lib/format/bytes";
import { unbilledTrafficQuery } from "../api/unbilledTraffic";
import { type Names, principalName } from "../names";

const MEANING =
  "Metadata, heartbeats, commits, refused batches and duplicates, and what a topic compresses " +
  "away: all of Kafka's requests and answers but batches that are stored and records that are " +
  "handed out. A limit of the cluster bounds it.";

interface Props {
  clusterId: string;
  credentials: Names["credentials"];
}

/** The traffic of a cluster that has no price, and who takes most of it. */
export function UnbilledTile({ clusterId, credentials }: Props): ReactElement {
  const { data, error } = useQuery(unbilledTrafficQuery(clusterId));
  const [first] = data?.principals ?? [];
  const names = { clusters: new Map<string, string>(), credentials };
  const most = first && `; most of it by ${principalName(first.principal, names)}`;
  return (
    <Tile
      label="Not billed"
      value={
        error && !data
          ? "not known"
          : data && (data.bytes === null ? "not known" : formatBytes(data.bytes))
      }
      note={
        <span title={MEANING}>
          {data?.bytes == null
            ? "beside records; counted while it runs"
            : `of traffic beside records since it woke, free of charge${most ?? ""}`}
        </span>
      }
    />
  );
}
