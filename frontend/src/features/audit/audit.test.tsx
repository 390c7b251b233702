import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { exampleOf } from "@/testing/contract";
import { answer, change, empty, refuse, sentTo } from "@/testing/server";
import { dialog, firstRow, rowsOf, visit } from "@/testing/visit";

const LIST = "GET /api/v1/audit-log";

test("an entry is listed with who did what to what", async () => {
  visit("/audit");
  const cells = await firstRow("Audit log");
  expect(cells[1]).toBe("Topic: create");
  expect(cells[2]).toBe("deploy API key");
  expect(cells[3]).toBe("topic payments in orders");
  expect(cells[4]).toBe("partitions 6");
});

test("a change is listed with the old and the new value, and opens with all of them", async () => {
  const configs = {
    "retention.ms": { from: "604800000", to: "86400000" },
    "cleanup.policy": { from: "delete", to: "compact" },
  };
  change(LIST, (page) => {
    page.items = page.items.map((entry) => ({
      ...entry,
      action: "topic.update",
      detail: { configs },
    }));
  });
  const { user } = visit("/audit");
  const cells = await firstRow("Audit log");
  expect(cells[4]).toBe("retention.ms 604800000 → 86400000, cleanup.policy delete → compact");
  await user.click(screen.getByRole("link", { name: "Topic: update" }));
  const panel = await dialog("Audit entry");
  const changed = within(panel.getByRole("group", { name: "What changed" }));
  expect(changed.getByText("cleanup.policy").nextSibling).toHaveTextContent("delete → compact");
});

test("a log is read on page by page, to its end", async () => {
  answer(LIST, ({ query }) => {
    const page = exampleOf(LIST);
    const second = query.cursor === "c2";
    const items = page.items.map((entry) => ({ ...entry, id: second ? "aud_2" : "aud_1" }));
    return { ...page, items, next_cursor: second ? null : "c2" };
  });
  const { user } = visit("/audit");
  expect(await rowsOf("Audit log")).toHaveLength(1);
  expect(screen.getByText("1 entry")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Read on" }));
  expect(await screen.findByText("2 entries")).toBeVisible();
  expect(await rowsOf("Audit log")).toHaveLength(2);
  expect(screen.getByRole("button", { name: "All read" })).toBeDisabled();
  expect(sentTo(LIST).map(({ query }) => query.cursor)).toEqual([undefined, "c2"]);
});

test("a filter counts with Enter, and is part of the address", async () => {
  const { user, address } = visit("/audit");
  await firstRow("Audit log");
  await user.type(screen.getByRole("textbox", { name: "Action" }), "topic.delete{Enter}");
  await expect.poll(address).toBe("/audit?action=topic.delete");
  await expect.poll(() => sentTo(LIST).at(-1)?.query.action).toBe("topic.delete");
  await user.click(screen.getByRole("button", { name: "Show all" }));
  await expect.poll(address).toBe("/audit");
});

test("a filter that nothing fits says so", async () => {
  empty(LIST);
  visit("/audit?action=nothing.such");
  expect(await screen.findByText("Nothing of this kind")).toBeVisible();
});

test("a log that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 403, detail: "Only owners and admins read the log." });
  visit("/audit");
  expect(await screen.findByRole("alert")).toHaveTextContent(
    "Only owners and admins read the log.",
  );
});

test("an entry opens whole, and leads to others like it", async () => {
  const { user, address } = visit("/audit");
  await user.click(await screen.findByRole("link", { name: "Topic: create" }));
  const panel = await dialog("Audit entry");
  expect(panel.getByText("203.0.113.7")).toBeVisible();
  expect(panel.getByTestId("code Detail")).toHaveTextContent('{ "partitions": 6 }');
  expect(address()).toBe("/audit?panel=aud_4m7nq2xk5vw3jzt6ybac");
  const link = panel.getByRole("link", { name: "All by deploy" });
  expect(link).toHaveAttribute("href", "/audit?actor=key_3k2jq7v5xw4mzn6yt2ba");
});
