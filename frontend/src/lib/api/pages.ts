import type { Page } from "./types";

/** A longer list is cut, which its table says: a browser becomes slow with more items. */
export const ITEMS_MAX = 5_000;

/**
 * Reads the pages of a list to its end, or until it has more than `most` items: so a list that is
 * longer than `most` was cut, and one that is exactly as long was not.
 */
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
  } while (cursor !== undefined && items.length <= most);
  return items;
}
