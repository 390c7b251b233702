import { expect, test } from "vitest";
import { allPages } from "./pages";

test("a list is read to its last page", async () => {
  const pages: Record<string, { items: number[]; next_cursor: string | null }> = {
    first: { items: [1, 2], next_cursor: "b" },
    b: { items: [3], next_cursor: "c" },
    c: { items: [], next_cursor: null },
  };
  const asked: (string | undefined)[] = [];
  const items = await allPages((cursor) => {
    asked.push(cursor);
    const page = pages[cursor ?? "first"];
    return page ? Promise.resolve(page) : Promise.reject(new Error("no such page"));
  });
  expect(items).toEqual([1, 2, 3]);
  expect(asked).toEqual([undefined, "b", "c"]);
});

test("a list that is cut is longer than was asked, and one that just fits is not", async () => {
  const endless = await allPages(() => Promise.resolve({ items: [1, 2], next_cursor: "on" }), 4);
  expect(endless.length).toBeGreaterThan(4);
  const whole = await allPages(() => Promise.resolve({ items: [1, 2], next_cursor: null }), 2);
  expect(whole).toHaveLength(2);
});
