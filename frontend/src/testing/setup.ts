/** Runs before and after each test of a component. `browser.ts` runs before it. */
import "@testing-library/jest-dom/vitest";
import { notifications } from "@mantine/notifications";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, expect, vi } from "vitest";
import { queryClient } from "@/app/queryClient";
import { setCsrfToken } from "@/lib/api/client";
import { forgetCredential } from "@/lib/freshCredentials";
import { exampleOf } from "./contract";
import { takeComplaints } from "./server";

// Pages keep the password of a credential that was just made: it is dropped after each test.
const created = {
  cluster: exampleOf("GET /api/v1/clusters/{id}").id,
  username: exampleOf("GET /api/v1/clusters/{cluster_id}/credentials/{id}").username,
};

queryClient.setDefaultOptions({
  ...queryClient.getDefaultOptions(),
  // The console waits longer before each further try.
  queries: { ...queryClient.getDefaultOptions().queries, retryDelay: 0 },
});

// A busy machine is slow. On a free one elements appear long before this.
configure({ asyncUtilTimeout: 10_000 });

// There is no canvas: what a chart draws is tested in a real browser.
vi.mock("@/components/chart/Plot", () => ({ Plot: () => null }));

// Errors of React or of a component fail the test, as breaks of the contract do.
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
