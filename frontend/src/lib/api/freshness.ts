import { type Query, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useSyncExternalStore } from "react";
import { isStatus } from "./client";
import { keys, nounOf } from "./keys";
import { explain } from "./problem";

/** How far what the page shows can be relied on. */
export interface Freshness {
  /** When the oldest of the figures that are kept up to date was read, in Unix ms; null: none. */
  readAt: number | null;
  /** What is shown and is not answered any more, and since when, in Unix ms. */
  stale: { nouns: string[]; since: number } | null;
  /** What could not be read at all. */
  missing: string[];
  /** Whether nothing is answered any more. */
  everything: boolean;
  /** What the service, or the browser, said of it. */
  because: string | null;
}

/** An answer may take a while. What is older than so many of its periods is not up to date. */
const PERIODS = 3;
const LATE_MS = 4_000;

/** Tells how old a query's data may be in ms while it is repeated; undefined where it is not. */
function oldestMs(query: Query): number | undefined {
  const pace = query.meta?.paceMs;
  const repeats = query.observers.some(({ options }) => Boolean(options.refetchInterval));
  return repeats && typeof pace === "number" ? PERIODS * pace + LATE_MS : undefined;
}

/** Pages of a log that was read stay true, whatever happens to the next page. */
function isLog({ state }: Query): boolean {
  return typeof state.data === "object" && state.data !== null && "pages" in state.data;
}

/**
 * Looks at all that a page has asked for. `visibleSince` is the Unix ms from which on the page
 * asks: a page that was hidden did not.
 */
export function freshnessOf(
  queries: readonly Query[],
  nowMs: number,
  visibleSince: number,
): Freshness {
  // The state of the service is shown by a dot of its own.
  const read = queries.filter(({ queryKey }) => queryKey[0] !== keys.readiness[0]);
  const known = read.filter(({ state }) => state.data !== undefined);
  const isFailed = ({ state }: Query): boolean => state.status === "error";
  const isLate = (query: Query): boolean => {
    const allowed = oldestMs(query);
    const since = Math.max(query.state.dataUpdatedAt, visibleSince);
    return allowed !== undefined && nowMs - since > allowed;
  };
  const stale = known.filter((query) => !isLog(query) && (isFailed(query) || isLate(query)));
  const missing = read.filter(
    // What a person may not see is left out of their pages.
    (query) =>
      query.state.data === undefined && isFailed(query) && !isStatus(query.state.error, 403),
  );
  const dated = known.filter((query) => oldestMs(query) !== undefined);
  const error = [...stale, ...missing].find(isFailed)?.state.error;
  return {
    readAt: least(dated.map(({ state }) => state.dataUpdatedAt)),
    stale: stale.length === 0 ? null : { nouns: nounsOf(stale), since: sinceOf(stale) },
    missing: nounsOf(missing),
    everything: stale.length > 0 && dated.every((query) => stale.includes(query)),
    because: error ? explain(error).happened : null,
  };
}

const least = (times: readonly number[]): number | null =>
  times.length === 0 ? null : Math.min(...times);

const sinceOf = (queries: readonly Query[]): number =>
  Math.min(...queries.map(({ state }) => state.dataUpdatedAt));

const nounsOf = (queries: readonly Query[]): string[] => [
  ...new Set(queries.map(({ queryKey }) => nounOf(queryKey))),
];

let visibleSince = 0;

function watchVisibility(changed: () => void): () => void {
  const note = (): void => {
    if (document.visibilityState === "visible") visibleSince = Date.now();
    changed();
  };
  document.addEventListener("visibilitychange", note);
  return () => {
    document.removeEventListener("visibilitychange", note);
  };
}

/** As text, which is the same while nothing has changed. */
const written = (client: QueryClient): string =>
  JSON.stringify(
    freshnessOf(client.getQueryCache().findAll({ type: "active" }), Date.now(), visibleSince),
  );

/** Returns how far what the page shows can be relied on, and follows it. */
export function useFreshness(): Freshness {
  const client = useQueryClient();
  const subscribe = useCallback(
    (changed: () => void) => {
      const ends = [client.getQueryCache().subscribe(changed), watchVisibility(changed)];
      const timer = setInterval(changed, 1_000);
      return () => {
        clearInterval(timer);
        for (const end of ends) end();
      };
    },
    [client],
  );
  const text = useSyncExternalStore(subscribe, () => written(client));
  return useMemo(() => JSON.parse(text) as Freshness, [text]);
}
