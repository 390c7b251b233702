import type { Page } from "./types";

/** A list longer than this is cut: the page says so, and no browser holds more with ease. */
export const ITEMS_MAX = 5_000;

/** Follows a list's cursors to its end, or until there are `most` items or more. */
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
