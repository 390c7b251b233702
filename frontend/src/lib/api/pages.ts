import type { Page } from "./types";

/** A longer list is cut, which the page says: a browser becomes slow with more items. */
export const ITEMS_MAX = 5_000;

/** Reads the pages of a list to its end, or until it has at least `most` items. */
export async function allPages<T>(
  read: (cursor: string | undefined) => Promise<Page<T>>,
  most = ITEMS_MAX,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && items.length < most);
  return items;
}
