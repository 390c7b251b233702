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
