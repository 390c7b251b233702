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

test("an endless list is read as far as was asked", async () => {
  const items = await allPages(() => Promise.resolve({ items: [1, 2], next_cursor: "on" }), 5);
  expect(items).toHaveLength(6);
});
