import { Skeleton, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { CopyText } from "@/components/CopyText";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Moment } from "@/components/Moment";
import { Section } from "@/components/Section";
import type { UsageFile, UsageRowDetail } from "@/lib/api/types";
import { formatBytes, formatCount, formatNumber } from "@/lib/format/bytes";
import { exactQuantity, formatQuantity, meterMeaning, meterName } from "@/lib/format/meters";
import { formatWindow, utcDay } from "@/lib/format/utc";
import { usageRowQuery } from "../api/usage";
import { clusterName, type Names, principalName } from "../names";
import classes from "./RowPanel.module.css";
import { RowMarks } from "./RowMarks";
import { minutesOf } from "./UsageRows";

/** A usage row with all that it was made from, down to the blocks of lanes. */
export function RowPanel({ id, names }: { id: string; names: Names }): ReactElement {
  const { data: row, error, refetch } = useQuery(usageRowQuery(id));
  if (error && !row) {
    return (
      <ErrorPanel error={error} what="The row could not be read" onRetry={() => void refetch()} />
    );
  }
  if (!row) {
    return (
      <Stack gap="sm" aria-busy="true">
        <Skeleton height={120} />
        <Skeleton height={60} />
        <Skeleton height={160} />
      </Stack>
    );
  }
  return (
    <>
      <RowFacts row={row} names={names} />
      <Section
        title="Roll-up"
        lead="The run that published the row. A published row never changes."
      >
        <dl className={classes.facts}>
          <dt>Run</dt>
          <dd>
            <CopyText value={row.run.id} what="the run's id" />
            {!row.run.current && (
              <div className={classes.quiet}>A newer run corrected the day.</div>
            )}
          </dd>
          <dt>Day</dt>
          <dd>{utcDay(new Date(`${row.run.day}T00:00:00Z`))}</dd>
          <dt>Published</dt>
          <dd>
            <Moment at={row.run.published_at} />
          </dd>
          <dt>Content</dt>
          <dd>
            <CopyText value={row.run.content_sha256} what="the run's SHA-256" />
          </dd>
        </dl>
      </Section>
      <Section
        title={row.files.length === 1 ? "Usage file" : "Usage files"}
        lead="The files of this cluster that the run read, each with the hash of its content."
      >
        <Stack gap="sm">
          {row.files.map((file) => (
            <FileFacts key={file.key} file={file} />
          ))}
          {row.files.length === 0 && <p className={classes.quiet}>None.</p>}
        </Stack>
      </Section>
    </>
  );
}

function RowFacts({ row, names }: { row: UsageRowDetail; names: Names }): ReactElement {
  const { meter, quantity } = row;
  return (
    <Section title={meterName(meter)} lead={meterMeaning(meter)} actions={<RowMarks row={row} />}>
      <dl className={classes.facts}>
        <dt>Quantity</dt>
        <dd>
          <strong>{formatQuantity(meter, quantity, minutesOf(row))}</strong>
          <div className={classes.quiet}>{exactQuantity(meter, quantity)}</div>
        </dd>
        <dt>Window, UTC</dt>
        <dd>{formatWindow(new Date(row.window_start), new Date(row.window_end))}</dd>
        <dt>Cluster</dt>
        <dd>{clusterName(row.cluster_id, names)}</dd>
        {row.topic_id && (
          <>
            <dt>Topic</dt>
            <dd>
              {row.topic ?? row.topic_id}
              {row.topic && <div className={classes.quiet}>{row.topic_id}</div>}
            </dd>
          </>
        )}
        {row.principal && (
          <>
            <dt>Credential</dt>
            <dd>
              {principalName(row.principal, names, row.principal_name)}
              <div className={classes.quiet}>{row.principal}</div>
            </dd>
          </>
        )}
        <dt>Row</dt>
        <dd>{row.id && <CopyText value={row.id} what="the row's id" />}</dd>
      </dl>
    </Section>
  );
}

function FileFacts({ file }: { file: UsageFile }): ReactElement {
  return (
    <div className={classes.file}>
      <CopyText value={file.key} what="the file's key" />
      <div className={classes.quiet}>
        {formatNumber(file.rows, "row")}, {formatBytes(file.size_bytes)}
      </div>
      <div className={classes.hash}>
        SHA-256 <CopyText value={file.sha256} what="the hash" />
      </div>
      {file.since && file.until && (
        <div className={classes.quiet}>
          Measured {formatWindow(new Date(file.since), new Date(file.until))} UTC
        </div>
      )}
      {file.lanes.length > 0 && (
        <table className={classes.lanes}>
          <thead>
            <tr>
              <th scope="col">Lane</th>
              <th scope="col">Blocks</th>
              <th scope="col">Until</th>
            </tr>
          </thead>
          <tbody>
            {file.lanes.map((lane) => (
              <tr key={`${String(lane.incarnation)} ${String(lane.first_sequence)}`}>
                <td>{lane.incarnation}</td>
                <td>
                  {formatCount(lane.first_sequence)}–{formatCount(lane.last_sequence)}
                </td>
                <td>
                  <Moment at={lane.until} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
