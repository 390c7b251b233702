import type { ReactElement, ReactNode } from "react";
import { ErrorPanel } from "./ErrorPanel";

interface Query {
  data: unknown;
  error: Error | null;
  refetch: () => unknown;
}

interface Props {
  /** The answers that the part stands on. */
  queries: readonly Query[];
  /** What could not be done: "The costs could not be read". */
  what: string;
  /** The part. While an answer is waited for it keeps its shape. */
  children: ReactNode;
}

/**
 * A part of a page that stands on answers of the service. Where one of them could not be read it
 * says so, and does not wait for it for ever.
 */
export function Answered({ queries, what, children }: Props): ReactElement {
  const failed = queries.find(({ data, error }) => error !== null && data === undefined);
  if (!failed) return <>{children}</>;
  const retry = (): void => void failed.refetch();
  return <ErrorPanel error={failed.error} what={what} onRetry={retry} />;
}
