import type { DefaultOptions, Query } from "@tanstack/react-query";
import { noteAddresses } from "./addresses";
import { isWatched } from "./watch";

/**
 * Keeps a query up to date as long as a visible page shows it: the service says when its answer has
 * changed (`watch.ts`), and while it does not, the query is repeated. What a hidden page shows is
 * left alone.
 */
export const repeated = (paceMs: number): { meta: { paceMs: number } } => ({ meta: { paceMs } });

/** What a page shows live: the state of clusters, topics and groups. */
export const LIVE = repeated(2_000);

/** Data that seldom changes: readiness, mail, lists of secrets. */
export const SLOW = repeated(10_000);

/** Returns after how many ms a query is repeated; false: it is not. */
export function intervalOf(query: Query): number | false {
  const pace = query.meta?.paceMs;
  return typeof pace !== "number" || isWatched(query) ? false : pace;
}

type Behavior = NonNullable<NonNullable<DefaultOptions["queries"]>["behavior"]>;

/**
 * Notes what each query asks for, and keeps the error of one that has no data until it is answered:
 * a page would show in turns that it loads and that it failed.
 */
export const noted: Behavior = {
  onFetch: (context, query) => {
    const { fetchFn } = context;
    const { data, error } = query.state;
    context.fetchFn = () => {
      if (data === undefined && error) query.setState({ status: "error", error });
      return noteAddresses(query.queryHash, fetchFn);
    };
  },
};
