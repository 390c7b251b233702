/** What each test of a component begins and ends with. `browser.ts` runs before it. */
import "@testing-library/jest-dom/vitest";
import { notifications } from "@mantine/notifications";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, expect, vi } from "vitest";
import { queryClient } from "@/app/queryClient";
import { setCsrfToken } from "@/lib/api/client";
import { forgetCredential } from "@/lib/freshCredentials";
import { exampleOf } from "./contract";
import { takeComplaints } from "./server";

// The credential whose password a page remembers once it was made.
const created = {
  cluster: exampleOf("GET /api/v1/clusters/{id}").id,
  username: exampleOf("GET /api/v1/clusters/{cluster_id}/credentials/{id}").username,
};

queryClient.setDefaultOptions({
  ...queryClient.getDefaultOptions(),
  // The console waits longer from try to try.
  queries: { ...queryClient.getDefaultOptions().queries, retryDelay: 0 },
});

// A busy machine is slow; what is right is seen long before.
configure({ asyncUtilTimeout: 10_000 });

// There is no canvas: what a chart draws is looked at in a real browser.
vi.mock("@/components/chart/Plot", () => ({ Plot: () => null }));

// What React or a component complains of fails the test like what breaks the contract.
const said: string[] = [];
vi.spyOn(console, "error").mockImplementation((...words: unknown[]) => {
  said.push(words.map(String).join(" "));
});

afterEach(() => {
  cleanup();
  notifications.clean();
  queryClient.clear();
  setCsrfToken(undefined);
  forgetCredential(created.cluster, created.username);
  expect([...takeComplaints(), ...said.splice(0)]).toEqual([]);
});
