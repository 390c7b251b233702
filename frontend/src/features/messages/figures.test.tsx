import { screen, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { chooseZone } from "@/lib/zone";
import type { Message, RecordBytes } from "@/lib/api/types";
import { exampleOf } from "@/testing/contract";
import { answer, empty, sentTo } from "@/testing/server";
import { CLUSTER, visit } from "@/testing/visit";

const TOPIC = `${CLUSTER}/topics/payments`;
const READ = "GET /api/v1/clusters/{cluster_id}/topics/{name}/messages";

afterEach(() => {
  chooseZone("local");
});

function contentOf(bytes: string, text: string | null = bytes): RecordBytes {
  return { base64: btoa(bytes), text, size: bytes.length, truncated: false };
}

function read(change: Partial<Message>): void {
  const page = exampleOf(READ);
  answer(READ, { ...page, items: page.items.map((item) => ({ ...item, ...change })) });
}

test("an offset is sent once, whole, when it is typed to its end", async () => {
  const { user, address } = visit(`${TOPIC}?from=offset`);
  const field = await screen.findByRole("textbox", { name: "Offset" });
  await expect.poll(() => sentTo(READ)).toHaveLength(1);
  await user.clear(field);
  await user.type(field, "77");
  expect(sentTo(READ)).toHaveLength(1);
  await user.keyboard("{Enter}");
  await expect.poll(address).toBe(`${TOPIC}?from=offset&offset=77`);
  await expect.poll(() => sentTo(READ).at(-1)?.query.offset).toBe("77");
  expect(sentTo(READ)).toHaveLength(2);
});

test("an offset beyond 2^53 that was copied from the page keeps its digits", async () => {
  const { user, address } = visit(`${TOPIC}?from=offset`);
  const field = await screen.findByRole("textbox", { name: "Offset" });
  await user.clear(field);
  await user.paste("9\u202f007\u202f199\u202f254\u202f740\u202f993");
  await user.keyboard("{Enter}");
  await expect.poll(address).toBe(`${TOPIC}?from=offset&offset=9007199254740993`);
  await expect.poll(() => sentTo(READ).at(-1)?.query.offset).toBe("9007199254740993");
});

test("an address with an offset beyond 2^53 asks for that offset", async () => {
  visit(`${TOPIC}?from=offset&offset=9007199254740993`);
  await expect.poll(() => sentTo(READ).at(-1)?.query.offset).toBe("9007199254740993");
});

test("what is no offset is refused, and asks for nothing", async () => {
  const { user } = visit(`${TOPIC}?from=offset`);
  const field = await screen.findByRole("textbox", { name: "Offset" });
  await expect.poll(() => sentTo(READ)).toHaveLength(1);
  await user.clear(field);
  await user.type(field, "12x{Enter}");
  expect(await screen.findByText("A whole number")).toBeVisible();
  expect(sentTo(READ)).toHaveLength(1);
});

test("an offset beyond the end is said to be, with what there is", async () => {
  empty(READ);
  visit(`${TOPIC}?from=offset&offset=77`);
  expect(
    await screen.findByText("Offset 77 is not written yet: partition 0 has 0 to 41."),
  ).toBeVisible();
  expect(screen.queryByText("No messages here")).toBeNull();
});

test("a link to a time means the same instant in every zone", async () => {
  chooseZone("utc");
  const { user, address } = visit(`${TOPIC}?from=timestamp`);
  const field = await screen.findByRole("textbox", { name: "Time, UTC" });
  await user.clear(field);
  await user.type(field, "2026-11-21 14:05:09{Enter}");
  const instant = "2026-11-21T14:05:09.000Z";
  await expect.poll(() => decodeURIComponent(address())).toContain(`timestamp=${instant}`);
  await expect.poll(() => sentTo(READ).at(-1)?.query.timestamp).toBe(instant);
});

test("a time has its zone, and one of 1970 is a date", async () => {
  chooseZone("utc");
  read({ timestamp_ms: "1", key: contentOf("k") });
  const { user } = visit(TOPIC);
  expect(await screen.findByText("1970-01-01 00:00 UTC")).toBeVisible();
  await user.click(screen.getByRole("gridcell", { name: "k" }));
  expect(await screen.findByText("1970-01-01 00:00:00.001 UTC")).toBeVisible();
});

test("a time that no calendar has breaks nothing", async () => {
  read({ timestamp_ms: "9223372036854775807", key: contentOf("k") });
  const { user } = visit(TOPIC);
  await user.click(await screen.findByRole("gridcell", { name: "k" }));
  const panel = await screen.findByRole("complementary", { name: "Message" });
  expect(panel).toHaveTextContent(/9\s223\s372\s036\s854\s775\s807 ms, which is in no calendar/);
});

test("what cannot be seen is written as escapes, and is copied as it is", async () => {
  read({ key: contentOf("k"), value: contentOf("x", "a\u202eb") });
  const { user } = visit(TOPIC);
  await user.click(await screen.findByRole("gridcell", { name: "k" }));
  const panel = await screen.findByRole("complementary", { name: "Message" });
  expect(panel).toHaveTextContent("a\\u202eb");
  expect(panel.textContent).not.toContain("\u202e");
});

test("Avro is named by its header's schema, and can be shown in base64", async () => {
  const avro = contentOf("\u0000\u0000\u0000\u0000\u0011\u0002\u00ff", null);
  read({ key: contentOf("k"), value: avro });
  const { user } = visit(TOPIC);
  await user.click(await screen.findByRole("gridcell", { name: "k" }));
  const panel = within(await screen.findByRole("complementary", { name: "Message" }));
  expect(panel.getByText("Confluent header, schema 17")).toBeVisible();
  const [value] = panel.getAllByRole("radio", { name: "Base64" }).slice(-1);
  if (value) await user.click(value);
  expect(panel.getByText(avro.base64)).toBeVisible();
});

test("repeated and null headers are all there, behind the value", async () => {
  const header = (key: string, value: RecordBytes | null) => ({ key, key_base64: null, value });
  const headers = [
    header("trace", contentOf("1")),
    header("trace", null),
    header("long", contentOf("x".repeat(5_000))),
  ];
  read({ key: contentOf("k"), headers });
  const { user } = visit(TOPIC);
  await user.click(await screen.findByRole("gridcell", { name: "k" }));
  const panel = within(await screen.findByRole("complementary", { name: "Message" }));
  const titles = panel.getAllByRole("heading", { level: 3 }).map((title) => title.textContent);
  expect(titles).toEqual(["Key", "Value", "Headers"]);
  const values = panel.getAllByRole("definition").map((value) => value.textContent);
  expect(values.slice(-3, -1)).toEqual(["1", "null"]);
});

test("a large value is loaded whole, and kept as a file with every byte", async () => {
  const whole = contentOf("x".repeat(70_000));
  const part = { ...contentOf("x".repeat(100)), size: whole.size, truncated: true };
  const page = exampleOf(READ);
  answer(READ, ({ query }) => ({
    ...page,
    items: page.items.map((item) => ({
      ...item,
      key: contentOf("k"),
      value: query.whole === "true" ? whole : part,
    })),
  }));
  const { user } = visit(TOPIC);
  await user.click(await screen.findByRole("gridcell", { name: "k" }));
  const panel = within(await screen.findByRole("complementary", { name: "Message" }));
  expect(panel.queryByRole("button", { name: "Download the value" })).toBeNull();
  await user.click(panel.getByRole("button", { name: "Load all of it" }));
  const keep = await panel.findByRole("button", { name: "Download the value" });
  const asked = sentTo(READ).at(-1)?.query;
  expect(asked).toMatchObject({ from: "offset", partition: "0", offset: "41", limit: "1" });
  const made = vi.spyOn(URL, "createObjectURL").mockReturnValue("blob:value");
  const clicked = vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => {});
  await user.click(keep);
  const [file] = made.mock.calls[0] ?? [];
  expect((file as Blob).size).toBe(70_000);
  expect(clicked).toHaveBeenCalledOnce();
  made.mockRestore();
  clicked.mockRestore();
});
