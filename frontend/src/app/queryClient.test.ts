import { QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { keys } from "@/lib/api/keys";
import { Problem } from "@/lib/api/problem";
import { queryClient } from "./queryClient";

const refused = new Problem({ status: 401, code: "not_authenticated", title: "Not signed in" });

function refuse(): never {
  throw refused;
}

beforeEach(() => {
  vi.useFakeTimers();
  queryClient.clear();
  queryClient.setQueryData(keys.session, "somebody");
});

afterEach(() => {
  vi.useRealTimers();
});

/** Runs a query whose first try is refused, and whose further tries `again` answers. */
async function read(again: () => string): Promise<PromiseSettledResult<string>[]> {
  const queryFn = vi.fn(again).mockImplementationOnce(refuse);
  const reading = queryClient.fetchQuery({ queryKey: ["something"], queryFn });
  const settled = Promise.allSettled([reading]);
  await vi.runAllTimersAsync();
  return settled;
}

test("a refusal that the session's new key ends does not sign out", async () => {
  expect(await read(() => "there")).toEqual([{ status: "fulfilled", value: "there" }]);
  expect(queryClient.getQueryData(keys.session)).toBe("somebody");
});

test("a session that is over leads to the sign-in", async () => {
  expect(await read(refuse)).toMatchObject([{ status: "rejected" }]);
  expect(queryClient.getQueryData(keys.session)).toBeNull();
});

test("what failed stays failed while it is asked for again, until it is answered", async () => {
  const failed = new Problem({ status: 500, code: "internal_error", title: "Failed" });
  const queryFn = vi.fn(() => Promise.resolve("there"));
  for (let at = 0; at < 6; at += 1) queryFn.mockRejectedValueOnce(failed);
  const observer = new QueryObserver(queryClient, { queryKey: ["something"], queryFn });
  const end = observer.subscribe(() => undefined);
  const seen: string[] = [];
  for (let at = 0; at < 3; at += 1) {
    if (at > 0) void observer.refetch();
    for (let ms = 0; ms < 10_000; ms += 500) {
      await vi.advanceTimersByTimeAsync(500);
      const { status } = observer.getCurrentResult();
      if (seen.at(-1) !== status) seen.push(status);
    }
  }
  expect(queryFn).toHaveBeenCalledTimes(7);
  expect(seen).toEqual(["pending", "error", "success"]);
  end();
});
