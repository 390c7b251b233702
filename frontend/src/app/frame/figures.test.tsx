import { cleanup, screen, waitFor } from "@testing-library/react";
import { HttpResponse } from "msw";
import { describe, expect, test } from "vitest";
import { queryClient } from "@/app/queryClient";
import { router } from "@/app/router";
import { exampleOf, operationNames, type OperationName } from "@/testing/contract";
import { refuse, respond, sent } from "@/testing/server";
import { visit } from "@/testing/visit";

/** Pages for people who are not signed in show no figures. */
const ENTRY = ["/signin", "/signup", "/verify", "/forgotten", "/password-reset", "/invitation"];

const NAMES: Record<string, string> = {
  $clusterId: exampleOf("GET /api/v1/clusters/{id}").id,
  $topic: "payments",
  $group: "billing",
  $invoiceId: exampleOf("GET /api/v1/invoices/{id}").id,
};

/** The address of every page of the console, with the names of the examples. */
const ADDRESSES = Object.keys(router.routesByPath)
  .filter((path) => !ENTRY.includes(path))
  .map((path) => path.replaceAll(/\$\w+/g, (name) => NAMES[name] ?? name))
  .map((path) => (path.length > 1 ? path.replace(/\/$/, "") : path));

const READS = operationNames.filter((name) => name.startsWith("GET "));
/** What the frame itself asks for, and what says which pages there are. */
const FRAME: OperationName[] = [
  "GET /api/v1/session",
  "GET /api/v1/projects",
  "GET /api/v1/incidents",
  "GET /api/v1/alerts",
  "GET /api/v1/account",
  "GET /api/v1/local-mail",
];

// Roles are computed from all style sheets, which takes long for a whole page: here are many.
const all = (selector: string): Element[] => [...document.querySelectorAll(selector)];

/** Waits until a page has all that it asks for. */
async function loaded(): Promise<void> {
  await waitFor(() => {
    expect(all("main h1, main h2, main [role=alert]")).not.toEqual([]);
    expect(queryClient.isFetching()).toBe(0);
    expect(all("[aria-busy=true], .mantine-Skeleton-root")).toEqual([]);
  });
}

test("every page is looked at", () => {
  expect(new Set(ADDRESSES).size).toBeGreaterThan(30);
});

describe.each([...new Set(ADDRESSES)])("%s", (address) => {
  test("says when its figures were read, and since when there is no answer", async () => {
    visit(address);
    await loaded();
    expect(screen.getByTestId("read at")).toHaveTextContent(/^Figures of \d\d:\d\d:\d\d UTC/);
    expect(all("[data-stale]")).toEqual([]);
    for (const name of READS) respond(name, () => HttpResponse.error());
    await queryClient.refetchQueries({ type: "active" });
    const complaint = await screen.findByText(/^No answer since \d\d:\d\d:\d\d UTC/);
    expect(complaint).toHaveTextContent("The console could not reach its server.");
    for (const title of all("main h1, main h2")) {
      expect(title.closest("[data-stale]")).not.toBeNull();
    }
  });

  test("says what it could not read, and does not go on as if it still read it", async () => {
    visit(address);
    await loaded();
    const own = sent()
      .map(({ name }) => name)
      .filter((name) => !FRAME.includes(name));
    if (own.length === 0) return;
    cleanup();
    queryClient.clear();
    for (const name of own) refuse(name, { status: 503, detail: "The store does not answer." });
    visit(address);
    await loaded();
    expect(document.body).toHaveTextContent("The store does not answer.");
  });
});
