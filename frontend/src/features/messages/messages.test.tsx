import { screen, within } from "@testing-library/react";
import { HttpResponse } from "msw";
import { expect, test } from "vitest";
import type { Message, RecordBytes } from "@/lib/api/types";
import { exampleOf } from "@/testing/contract";
import { answer, change, empty, onlySentTo, refuse, respond, sentTo } from "@/testing/server";
import { actAs, choose, CLUSTER, dialog, visit } from "@/testing/visit";

const TOPIC = `${CLUSTER}/topics/payments`;
const READ = "GET /api/v1/clusters/{cluster_id}/topics/{name}/messages";
const PRODUCE = "POST /api/v1/clusters/{cluster_id}/topics/{name}/messages";
const STREAM = "GET /api/v1/clusters/{cluster_id}/topics/{name}/messages/stream";

function contentOf(bytes: string, text: string | null): RecordBytes {
  return { base64: btoa(bytes), text, size: bytes.length, truncated: false };
}

/** Returns copies of the example's record with changes, at consecutive offsets. */
function records(...changes: Partial<Message>[]): Message[] {
  const [first] = exampleOf(READ).items;
  if (!first) throw new Error("the example has no record");
  return changes.map((one, at) => ({ ...first, offset: String(41 + at), ...one }));
}

function read(...changes: Partial<Message>[]): void {
  answer(READ, { ...exampleOf(READ), items: records(...changes) });
}

async function gridRows(): Promise<string[][]> {
  const grid = within(await screen.findByRole("grid", { name: "Messages" }));
  const [, ...rows] = grid.getAllByRole("row");
  return rows.map((row) =>
    within(row)
      .getAllByRole("gridcell")
      .map((cell) => cell.textContent),
  );
}

/** Clicks a record and returns the panel beside the list. */
async function opened(user: ReturnType<typeof visit>["user"], text: string): Promise<HTMLElement> {
  await user.click(await screen.findByRole("gridcell", { name: text }));
  return screen.findByRole("complementary", { name: "Message" });
}

test("records are listed with their place, and null is not the word null", async () => {
  read({ offset: "1234567", key: contentOf("order-1", "order-1") }, { key: null, value: null });
  visit(TOPIC);
  const [first, second] = await gridRows();
  expect(first?.[1]).toMatch(/^1\s234\s567$/);
  expect(first?.slice(3)).toEqual(["order-1", '{"id":1}']);
  expect(second?.slice(3)).toEqual(["null", "null"]);
  expect(screen.getAllByText("null")[0]?.parentElement).toHaveAttribute("data-null");
});

test("a number that no double holds is shown as it was written", async () => {
  const text = '{"id":73314510714175489,"total":1.50}';
  read({ value: contentOf(text, text) });
  const { user } = visit(TOPIC);
  const panel = await opened(user, text);
  expect(panel).toHaveTextContent('{ "id": 73314510714175489, "total": 1.50 }');
});

test("bytes that are no text are shown in hex, and can be copied", async () => {
  read({ value: contentOf("\xff\x00Fr", null) });
  const { user } = visit(TOPIC);
  const panel = within(await opened(user, "int32 -16759182: 0xff004672"));
  expect(panel.getByText(/^000000 ff 00 46 72/)).toBeVisible();
  expect(panel.queryByRole("radio", { name: "Text" })).toBeNull();
  await user.click(panel.getByRole("button", { name: "Copy the value" }));
  expect(await navigator.clipboard.readText()).toMatch(/^000000 {2}ff 00 46 72/);
});

test("a record without a value is a tombstone, and headers keep their order", async () => {
  const headers = ["b", "a", "b"].map((key, at) => ({
    key,
    key_base64: btoa(key),
    value: contentOf(String(at), String(at)),
  }));
  read({ key: contentOf("k", "k"), value: null, headers });
  const { user } = visit(TOPIC);
  const panel = within(await opened(user, "k"));
  expect(panel.getByText(/No value: a tombstone/)).toBeVisible();
  const terms = panel.getAllByRole("term").map((term) => term.textContent);
  expect(terms.slice(-3)).toEqual(["b", "a", "b"]);
});

test("arrow keys move from record to record, and Escape closes the one that is open", async () => {
  read({ key: contentOf("k1", "k1") }, { key: contentOf("k2", "k2") });
  const { user } = visit(TOPIC);
  const panel = await opened(user, "k1");
  expect(panel).toHaveTextContent("payments 0 @ 41");
  await user.click(screen.getByRole("rowgroup"));
  await user.keyboard("{ArrowDown}");
  expect(await screen.findByText("payments 0 @ 42")).toBeVisible();
  await user.keyboard("{Escape}");
  expect(screen.queryByRole("complementary")).toBeNull();
});

test("reading goes on where it stopped, until all is read", async () => {
  answer(READ, ({ query }) => {
    const page = exampleOf(READ);
    const last = query.cursor === "more";
    const items = records({ offset: last ? "40" : "41" });
    return { ...page, items, next_cursor: last ? null : "more" };
  });
  const { user } = visit(TOPIC);
  expect(await screen.findByText("1 message")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Read on" }));
  expect(await screen.findByText("2 messages")).toBeVisible();
  expect(screen.getByRole("button", { name: "All read" })).toBeDisabled();
});

test("an empty topic leads to the first record", async () => {
  empty(READ);
  visit(TOPIC);
  expect(await screen.findByText("No messages here")).toBeVisible();
  expect(screen.getByRole("link", { name: "connect a client" })).toBeVisible();
});

test("a filter that nothing fits so far says how far it has looked", async () => {
  change(READ, (page) => Object.assign(page, { items: [], next_cursor: "more" }));
  visit(`${TOPIC}?filter=value.total+%3E+100`);
  expect(await screen.findByText("Nothing matches so far")).toBeVisible();
  expect(screen.getByText(/scanned so far: 42 records, 336 B/)).toBeVisible();
  expect(onlySentTo(READ).query.filter).toBe("value.total > 100");
});

test("a filter that cannot be parsed shows the problem's text", async () => {
  refuse(READ, { status: 400, code: "invalid", detail: "A value is expected behind `>`." });
  visit(`${TOPIC}?filter=value+%3E`);
  expect(await screen.findByRole("alert")).toHaveTextContent("A value is expected behind `>`.");
});

test("a place is part of the address", async () => {
  const { user, address } = visit(TOPIC);
  await gridRows();
  await user.click(screen.getByRole("radio", { name: "Oldest" }));
  await expect.poll(address).toBe(`${TOPIC}?from=oldest`);
  await expect.poll(() => sentTo(READ).at(-1)?.query.from).toBe("oldest");
});

test("reading of a sleeping cluster asks before it wakes it", async () => {
  const asleep = { status: 409, code: "cluster_asleep", detail: "The cluster is asleep." };
  refuse(READ, asleep);
  const { user } = visit(TOPIC);
  const wake = await screen.findByRole("button", { name: "Wake it and read" });
  expect(sentTo(READ)[0]?.query.wake).toBeUndefined();
  answer(READ, exampleOf(READ));
  await user.click(wake);
  expect(await gridRows()).toHaveLength(1);
  expect(sentTo(READ).at(-1)?.query.wake).toBe("true");
});

/** Keeps the topic's stream open; returns a function that sends an event over it. */
function streaming(): (event: string, data: unknown) => void {
  const followers: ReadableStreamDefaultController<Uint8Array>[] = [];
  respond(STREAM, () => {
    const stream = new ReadableStream<Uint8Array>({
      start: (one) => {
        followers.push(one);
        one.enqueue(new TextEncoder().encode("event: live\ndata: {}\n\n"));
      },
    });
    return new HttpResponse(stream, { headers: { "Content-Type": "text/event-stream" } });
  });
  return (event, data) => {
    const text = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    followers.at(-1)?.enqueue(new TextEncoder().encode(text));
  };
}

test("live records appear as they come, the newest first", async () => {
  const send = streaming();
  visit(`${TOPIC}?from=live`);
  expect(await screen.findByText("Waiting for messages")).toBeVisible();
  expect(await screen.findByText(/^Live: new messages appear/)).toBeVisible();
  for (const record of records({ offset: "1" }, { offset: "2" })) send("message", record);
  await screen.findByRole("grid", { name: "Messages" });
  await expect.poll(async () => (await gridRows()).map((cells) => cells[1])).toEqual(["2", "1"]);
  send("skipped", { count: 1500 });
  expect(await screen.findByText(/1\s500 came too fast to be shown/)).toBeVisible();
});

test("batches that cannot be decoded are named, each with a way to delete up to it", async () => {
  const damaged = [0, 1, 2, 3, 4, 5, 6].map((at) => ({
    partition: 0,
    first_offset: String(1_000 * (at + 1)),
    next_offset: String(1_000 * (at + 1) + (at === 0 ? 1 : 2)),
    reason: "undecodable" as const,
  }));
  change(READ, (page) => (page.damaged = damaged));
  const { user, address } = visit(TOPIC);
  expect(await screen.findByText(/^1 offset \(1\s000\) of partition 0 cannot/)).toBeVisible();
  expect(screen.getByText(/^2 offsets \(2\s000–2\s001\) of partition 0 cannot/)).toBeVisible();
  expect(screen.getByText("and 2 more")).toBeVisible();
  const [first] = screen.getAllByRole("link", { name: "Delete up to here" });
  if (first) await user.click(first);
  await dialog("Delete up to a damaged batch of payments");
  expect(address()).toBe(`${TOPIC}/partitions?panel=skip-damaged-0-1000`);
});

test("a topic without damage has no note of it", async () => {
  change(READ, (page) => (page.damaged = []));
  visit(TOPIC);
  await gridRows();
  expect(screen.queryByText(/cannot be decoded/)).toBeNull();
});

test("a live tail names the batches that it skipped", async () => {
  const send = streaming();
  const { user } = visit(`${TOPIC}?from=live`);
  await screen.findByText(/^Live: /);
  const batch = { partition: 3, first_offset: "94", next_offset: "96", reason: "too_slow" };
  send("damaged", batch);
  expect(await screen.findByText(/^2 offsets \(94–95\) of partition 3 cannot/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Clear" }));
  expect(screen.queryByText(/cannot be decoded/)).toBeNull();
});

test("what comes while it is paused waits, and is shown when it goes on", async () => {
  const send = streaming();
  const { user } = visit(`${TOPIC}?from=live`);
  await screen.findByText(/^Live: /);
  await user.click(screen.getByRole("button", { name: "Pause" }));
  for (const record of records({ offset: "7" })) send("message", record);
  expect(await screen.findByText(/^Paused, 1 waiting/)).toBeVisible();
  expect(screen.queryByRole("grid")).toBeNull();
  await user.click(screen.getByRole("button", { name: "Go on" }));
  expect((await gridRows()).map((cells) => cells[1])).toEqual(["7"]);
  await user.click(screen.getByRole("button", { name: "Clear" }));
  expect(screen.queryByRole("grid")).toBeNull();
});

test("a stream that cannot go on says so, and is not asked again", async () => {
  const send = streaming();
  visit(`${TOPIC}?from=live`);
  await screen.findByText(/^Live: /);
  send("end", { reason: "unreadable" });
  expect(await screen.findByText("Ended: a message cannot be decoded here")).toBeVisible();
  expect(sentTo(STREAM)).toHaveLength(1);
});

test("a sleeping cluster is not followed before somebody agrees to wake it", async () => {
  streaming();
  change("GET /api/v1/clusters/{id}", ({ status }) => (status.phase = "asleep"));
  const { user } = visit(`${TOPIC}?from=live`);
  const wake = await screen.findByRole("button", { name: "Wake it and read" });
  const before = sentTo(STREAM).filter(({ query }) => query.wake);
  expect(before).toEqual([]);
  await user.click(wake);
  await expect.poll(() => sentTo(STREAM).at(-1)?.query.wake).toBe("true");
});

test("a record is produced as it was typed", async () => {
  const { user } = visit(`${TOPIC}?panel=produce`);
  const panel = await dialog("Produce to payments");
  await user.type(panel.getByRole("textbox", { name: "Key" }), "order-1");
  await user.type(panel.getByRole("textbox", { name: "Value" }), "paid");
  await choose(user, panel, "Partition", "0");
  await user.click(panel.getByRole("button", { name: "Header" }));
  await user.type(panel.getByRole("textbox", { name: "Name of header 1" }), "source");
  await user.type(panel.getByRole("textbox", { name: "Value of header 1" }), "web");
  await user.click(panel.getByRole("button", { name: "Produce" }));
  expect(await screen.findByText("Written to partition 0, offset 42")).toBeVisible();
  expect(onlySentTo(PRODUCE).body).toEqual({
    key: "order-1",
    value: "paid",
    partition: 0,
    headers: [{ key: "source", value: "web" }],
  });
});

test("a tombstone has a key and no value", async () => {
  const { user } = visit(`${TOPIC}?panel=produce`);
  const panel = await dialog("Produce to payments");
  await user.type(panel.getByRole("textbox", { name: "Key" }), "order-1");
  await user.click(panel.getByRole("switch", { name: /tombstone/ }));
  expect(panel.getByRole("textbox", { name: "Value" })).toBeDisabled();
  await user.click(panel.getByRole("button", { name: "Produce" }));
  await expect
    .poll(() => sentTo(PRODUCE)[0]?.body)
    .toEqual({ key: "order-1", value: null, headers: [] });
});

test("a record that was not confirmed may still be there, and the form says so", async () => {
  refuse(PRODUCE, { status: 503, code: "unavailable", detail: "No broker answered in time." });
  const { user } = visit(`${TOPIC}?panel=produce`);
  const panel = await dialog("Produce to payments");
  await user.click(panel.getByRole("button", { name: "Produce" }));
  const alert = await panel.findByRole("alert");
  expect(alert).toHaveTextContent("No confirmation of the record");
  expect(alert).toHaveTextContent("The change itself may or may not have been made.");
});

test("a reader reads and produces nothing", async () => {
  actAs("reader");
  visit(`${TOPIC}?panel=produce`);
  await gridRows();
  const produce = screen.getByRole("button", { name: "Produce" });
  expect(produce).toHaveAccessibleDescription(/yours is reader/);
  expect(screen.queryByRole("dialog")).toBeNull();
});
