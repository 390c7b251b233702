import { type ReactElement, useMemo } from "react";
import { TimeChart } from "@/components/chart/TimeChart";
import { formatLevel } from "@/lib/format/meters";
import type { UsageSeries } from "../api/usage";
import { groupNames, type Names } from "../names";
import { meterPicture, trafficPicture } from "../pictures";
import type { GroupBy } from "../series";
import classes from "./UsageCharts.module.css";

interface Props {
  usage: UsageSeries | undefined;
  by: GroupBy;
  names: Names;
  onZoom: (from: number, to: number) => void;
}

const bytes = (value: number): string => formatLevel("ingress_bytes", value);
const partitions = (value: number): string => formatLevel("partition_minutes", value);
const seconds = (value: number): string => formatLevel("broker_seconds", value);

/** The charts: bytes in and out mirrored, then stored bytes, partitions and broker time. */
export function UsageCharts({ usage, by, names, onZoom }: Props): ReactElement {
  const drawn = useMemo(() => {
    if (!usage) return undefined;
    const drawing = { usage, by, nameOf: groupNames(usage.items, by, names) };
    return {
      traffic: trafficPicture(drawing),
      stored: meterPicture(drawing, "storage_byte_minutes"),
      partitions: meterPicture(drawing, "partition_minutes"),
      brokers: meterPicture(drawing, "broker_seconds"),
    };
  }, [usage, by, names]);
  const window = usage ? ` by the ${usage.range.granularity}` : "";
  return (
    <div className={classes.charts}>
      <div className={classes.wide}>
        <TimeChart
          title={by === "meter" ? "Traffic" : "Traffic: in above, out below"}
          summary={`Bytes in above the line and bytes out below it${window}. The rows are below.`}
          picture={drawn?.traffic.picture}
          totals={drawn?.traffic.totals}
          format={bytes}
          height={260}
          onZoom={onZoom}
        />
      </div>
      <TimeChart
        title="Stored"
        summary={`Bytes stored${window}. The rows are below.`}
        picture={drawn?.stored.picture}
        compact
        format={bytes}
        height={150}
        onZoom={onZoom}
      />
      <TimeChart
        title="Partitions"
        summary={`Partitions${window}. The rows are below.`}
        picture={drawn?.partitions.picture}
        compact
        format={partitions}
        height={150}
        onZoom={onZoom}
      />
      <TimeChart
        title="Broker time"
        summary={`Time that brokers ran${window}. The rows are below.`}
        picture={drawn?.brokers.picture}
        compact
        format={seconds}
        height={150}
        onZoom={onZoom}
      />
    </div>
  );
}
