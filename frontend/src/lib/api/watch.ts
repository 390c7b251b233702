import type { Query, QueryClient } from "@tanstack/react-query";
import { addressesOf, digestAt } from "./addresses";

/** The service reads at most so many addresses for a page, which asks for further ones itself. */
const ADDRESSES_MAX = 40;
/** A page that is being built asks for one thing after the other. */
const SETTLE_MS = 250;
/** From a stream something is heard every ten seconds, whatever happens. */
const SILENT_MS = 25_000;
/** After a refusal the page asks for its figures itself for so long. */
const AGAIN_MS = 30_000;

/** `2:/api/v1/clusters`: every how many seconds, and what. */
type Entry = `${number}:${string}`;

interface Stream {
  source: EventSource;
  entries: readonly Entry[];
  addresses: readonly string[];
  open: boolean;
  /** When it was last heard, by a clock that only runs on. */
  heardAt: number;
}

let stream: Stream | undefined;
let refusedUntil = 0;

/** Returns whether the service tells this page when the query's answer has changed. */
export function isWatched(query: Query): boolean {
  if (!stream?.open) return false;
  const { addresses } = stream;
  const own = addressesOf(query.queryHash);
  return own.length > 0 && own.every((address) => addresses.includes(address));
}

/** Tells every how many ms a query is repeated, which may differ by who shows it; 0: it is not. */
function paceOf(query: Query): number {
  const repeats = query.observers.some(({ options }) => Boolean(options.refetchInterval));
  const pace = query.meta?.paceMs;
  return repeats && typeof pace === "number" ? pace : 0;
}

const activeOf = (client: QueryClient): Query[] =>
  client
    .getQueryCache()
    .findAll({ type: "active" })
    .filter((query) => paceOf(query) > 0);

/** Returns what a stream has to name for all that the page shows. */
function entriesOf(queries: readonly Query[]): Entry[] {
  const paces = new Map<string, number>();
  for (const query of queries) {
    for (const address of addressesOf(query.queryHash)) {
      paces.set(address, Math.min(paces.get(address) ?? Infinity, paceOf(query)));
    }
  }
  return [...paces]
    .map(([address, pace]): Entry => `${Math.min(pace / 1_000, 60)}:${address}`)
    .sort()
    .slice(0, ADDRESSES_MAX);
}

/**
 * Has the service say which of the page's figures have changed, over one stream that follows what
 * the page shows. A hidden page has none. Where a stream is refused or falls silent, queries are
 * repeated as before. Returns a function that ends it.
 */
export function watchChanges(client: QueryClient): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const plan = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      follow(client);
    }, SETTLE_MS);
  };
  const ends = [client.getQueryCache().subscribe(plan)];
  document.addEventListener("visibilitychange", plan);
  // Finds a stream that fell silent, and tries again after a refusal.
  const looks = setInterval(plan, SILENT_MS / 5);
  return () => {
    document.removeEventListener("visibilitychange", plan);
    clearInterval(looks);
    clearTimeout(timer);
    for (const end of ends) end();
    close();
  };
}

/** Brings the stream in line with what the page shows. */
function follow(client: QueryClient): void {
  const visible = document.visibilityState === "visible";
  const entries = visible ? entriesOf(activeOf(client)) : [];
  if (stream && performance.now() - stream.heardAt > SILENT_MS) lose(client);
  if (stream?.entries.join() === entries.join()) return;
  close();
  if (entries.length > 0 && performance.now() >= refusedUntil) open(client, entries);
}

function close(): void {
  stream?.source.close();
  stream = undefined;
}

/** Gives the stream up for a while. Whatever it notified of is asked for by the page again. */
function lose(client: QueryClient): void {
  const watched = activeOf(client).filter(isWatched);
  close();
  refusedUntil = performance.now() + AGAIN_MS;
  for (const query of watched) refetch(client, query);
}

function refetch(client: QueryClient, { queryKey }: Query): void {
  void client.refetchQueries({ queryKey, exact: true, type: "active" });
}

function open(client: QueryClient, entries: readonly Entry[]): void {
  const search = new URLSearchParams(entries.map((entry) => ["read", entry]));
  const source = new EventSource(`/api/v1/watch?${search}`);
  const addresses = entries.map((entry) => entry.slice(entry.indexOf(":") + 1));
  const mine: Stream = { source, entries, addresses, open: false, heardAt: performance.now() };
  stream = mine;
  const heard = (): void => {
    mine.heardAt = performance.now();
    if (mine.open) return;
    // Only what is heard tells that a proxy hands events on at once.
    mine.open = true;
    // Each query looks again at whether it is repeated.
    for (const query of activeOf(client).filter(isWatched)) query.setState({});
  };
  source.addEventListener("on", heard);
  source.addEventListener("seen", (event: MessageEvent<string>) => {
    heard();
    for (const [number, digest] of Object.entries(JSON.parse(event.data) as Seen)) {
      const address = addresses[Number(number)];
      if (address !== undefined) take(client, address, digest);
    }
  });
  source.onerror = () => {
    // The browser opens it again by itself, unless it was refused. Meanwhile nobody tells anything.
    const wasOpen = mine.open;
    if (source.readyState === EventSource.CLOSED) lose(client);
    else if (wasOpen) {
      const watched = activeOf(client).filter(isWatched);
      mine.open = false;
      for (const query of watched) refetch(client, query);
    }
  };
}

/** Address by its number → the digest of its answer; null: ask for it. */
type Seen = Record<string, string | null>;

const confirmedAt = new Map<string, number>();

/** Takes what the service says of an address: its answer is as it was, or it is asked for again. */
function take(client: QueryClient, address: string, digest: string | null): void {
  const same = digest !== null && digest === digestAt(address);
  if (same) confirmedAt.set(address, Date.now());
  for (const query of activeOf(client)) {
    const own = addressesOf(query.queryHash);
    if (!own.includes(address)) continue;
    if (!same) refetch(client, query);
    else confirm(client, query, own);
  }
}

/** Notes that what a query has read is as it was a moment ago. */
function confirm(client: QueryClient, query: Query, addresses: readonly string[]): void {
  const { data, dataUpdatedAt, fetchStatus } = query.state;
  const at = Math.min(...addresses.map((address) => confirmedAt.get(address) ?? 0));
  if (data === undefined || fetchStatus !== "idle" || at <= dataUpdatedAt) return;
  client.setQueryData(query.queryKey, data, { updatedAt: at });
}
