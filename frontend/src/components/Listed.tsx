import type { ReactElement, ReactNode } from "react";
import { ErrorPanel } from "./ErrorPanel";

interface Props<Row> {
  /** The query's answer: what it read, and why it could not. */
  query: { data: Row[] | undefined; error: Error | null; refetch: () => unknown };
  /** What could not be done: "The topics could not be read". */
  what: string;
  /** Shown in place of an empty list. */
  empty: ReactNode;
  /** The table. It gets no rows while they load, and keeps its shape. */
  children: (rows: readonly Row[] | undefined) => ReactNode;
}

/** A list in one of its four states: loading, failed, empty, there. */
export function Listed<Row>({ query, what, empty, children }: Props<Row>): ReactElement {
  const { data, error, refetch } = query;
  if (error && !data)
    return <ErrorPanel error={error} what={what} onRetry={() => void refetch()} />;
  return <>{data?.length === 0 ? empty : children(data)}</>;
}
