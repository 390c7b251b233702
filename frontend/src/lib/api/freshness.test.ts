import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { freshnessOf } from "./freshness";
import { keys, nounOf } from "./keys";
import { Problem } from "./problem";
import { intervalOf, LIVE } from "./polling";

const queryClient = new QueryClient({
  defaultOptions: { queries: { refetchInterval: intervalOf } },
});
const START = Date.parse("2026-11-21T16:00:00Z");

beforeEach(() => {
  vi.useFakeTimers({ now: START });
});

afterEach(() => {
  queryClient.clear();
  vi.useRealTimers();
});

const refused = (status: number): Problem =>
  new Problem({ status, code: "refused", title: "No", detail: "The store does not answer." });

/** Shows a query on the page, whose first answer is `first`; what it is asked later is `later`. */
async function show(
  queryKey: readonly unknown[],
  first: () => unknown,
  later = first,
): Promise<() => void> {
  const queryFn = vi.fn(later).mockImplementationOnce(first);
  const options = { queryKey, queryFn, ...LIVE, retry: false } as const;
  const stop = new QueryObserver(queryClient, options).subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(10);
  return stop;
}

const look = (visibleSince = 0): ReturnType<typeof freshnessOf> =>
  freshnessOf(queryClient.getQueryCache().findAll({ type: "active" }), Date.now(), visibleSince);

const hang = (): Promise<never> => new Promise(() => undefined);

function fail(): never {
  throw refused(503);
}

test("what is answered is as old as its oldest figure", async () => {
  const stop = await show(keys.clusterList, () => []);
  expect(look()).toEqual({
    readAt: START,
    stale: null,
    missing: [],
    everything: false,
    because: null,
  });
  stop();
});

test("what is asked and not answered is stale after a while", async () => {
  const stop = await show(keys.clusterList, () => [], hang);
  await vi.advanceTimersByTimeAsync(9_000);
  expect(look().stale).toBeNull();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(look()).toMatchObject({
    stale: { nouns: ["clusters"], since: START },
    everything: true,
    because: null,
  });
  // A page that was hidden did not ask meanwhile.
  expect(look(Date.now()).stale).toBeNull();
  stop();
});

test("what is refused is stale at once, and says so", async () => {
  const stop = await show(keys.topicList("cl_a"), () => [], fail);
  await queryClient.refetchQueries({ type: "active" });
  expect(look()).toMatchObject({
    stale: { nouns: ["topics"], since: START },
    because: "The store does not answer.",
  });
  stop();
});

test("where only a part is not answered that part is named", async () => {
  const stops = [
    await show(keys.groupList("cl_a"), () => [], fail),
    await show(keys.clusterList, () => []),
    await show(keys.acls("cl_a"), fail),
  ];
  await queryClient.refetchQueries({ type: "active" });
  expect(look()).toMatchObject({
    stale: { nouns: ["consumer groups"] },
    missing: ["ACLs"],
    everything: false,
  });
  for (const stop of stops) stop();
});

test("what a person may not see is not missed", async () => {
  const stop = await show(keys.costs("2026-11"), () => {
    throw refused(403);
  });
  expect(look()).toMatchObject({ missing: [], stale: null });
  stop();
});

test("each query is named after what it reads", () => {
  const names = [
    keys.cluster("cl_a"),
    keys.topic("cl_a", "one"),
    keys.messages("cl_a", "t", {}),
    keys.partitions("cl_a", "t"),
    keys.deletedTopics("cl_a"),
    keys.group("cl_a", "g"),
    keys.apiKeys,
    keys.invoiceList,
  ].map(nounOf);
  expect(names).toEqual([
    ...["the cluster", "the topic", "messages", "partitions", "deleted topics"],
    ...["the consumer group", "API keys", "invoices"],
  ]);
});
