import { type AnyRouter, useRouter } from "@tanstack/react-router";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";

/**
 * What the address of any page may hold of how it is looked at: the order of its tables, what is
 * searched for, which message is open. So each view has an address: it can be sent to somebody, a
 * reload shows the same, and the browser's way back leads to the view before.
 */
export type ViewName = "sort" | "find" | "only" | "message" | "panel" | "language";

/** A `step` is a view that the way back leads to; what `replaces` one is not. */
type Way = "step" | "replaces";

type Change = (value: string | undefined, way?: Way) => void;

const nothing = (): (() => void) => () => undefined;

/** Returns what the address holds under a name, and a function that changes it. */
export function useView(name: ViewName): [string | undefined, Change] {
  const router = useRouter({ warn: false }) as AnyRouter | undefined;
  // A component outside of every page has no address, and its view lasts as long as itself.
  const [own, setOwn] = useState<string>();
  const query = useSyncExternalStore(
    router?.history.subscribe ?? nothing,
    () => router?.history.location.search ?? "",
  );
  const held = useMemo(
    () => (router ? textOf(router.options.parseSearch(query)[name]) : undefined),
    [router, query, name],
  );
  const change: Change = (value, way = "step") => {
    if (!router) {
      setOwn(value);
      return;
    }
    void router.navigate({
      to: ".",
      search: (before: Record<string, unknown>) => ({ ...before, [name]: value }),
      replace: way === "replaces",
      resetScroll: false,
    });
  };
  return [router ? held : own, change];
}

/** Anybody can type an address, and in one that was typed `77` is a number. */
function textOf(value: unknown): string | undefined {
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

const PAUSE_MS = 300;

interface Find {
  typed: string;
  type: (text: string) => void;
  /** What is searched for: what was typed, without case. */
  needle: string;
}

/** Returns what is searched for on a page. The address follows when the person pauses. */
export function useFind(): Find {
  const [held = "", hold] = useView("find");
  const [typed, setTyped] = useState(held);
  const [seen, setSeen] = useState(held);
  if (held !== seen) {
    // Another address replaces what was typed; one that only followed it does not.
    setSeen(held);
    if (held !== typed.trim()) setTyped(held);
  }
  const wanting = typed.trim();
  useEffect(() => {
    if (wanting === held) return undefined;
    const timer = setTimeout(() => {
      hold(wanting || undefined, "replaces");
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
    // `hold` is another one each time.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [wanting, held]);
  return { typed, type: setTyped, needle: wanting.toLowerCase() };
}

/** How a table is sorted, as TanStack Table has it. */
type Sorting = { id: string; desc: boolean }[];

const slugOf = (label: string): string => label.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");

/**
 * Returns how a table is sorted, and a function that changes it. The address holds it for each
 * table of the page that is sorted otherwise than at first: `?sort=topics.-partitions`.
 */
export function useSorting(
  label: string,
  initial: Sorting,
): [Sorting, (change: Sorting | ((before: Sorting) => Sorting)) => void] {
  const [held = "", hold] = useView("sort");
  const table = slugOf(label);
  const entries = held.split(",").filter(Boolean);
  const mine = entries.find((entry) => entry.startsWith(`${table}.`));
  const column = mine?.slice(table.length + 1);
  const [first] = useState(initial);
  // The table sorts its rows again for each new array.
  const sorting = useMemo(
    () =>
      column === undefined
        ? first
        : [{ id: column.replace(/^-/, ""), desc: column.startsWith("-") }],
    [column, first],
  );
  const change = (next: Sorting | ((before: Sorting) => Sorting)): void => {
    const [by] = typeof next === "function" ? next(sorting) : next;
    const others = entries.filter((entry) => entry !== mine);
    const entry = by && `${table}.${by.desc ? "-" : ""}${by.id}`;
    hold([...others, ...(entry ? [entry] : [])].join(",") || undefined);
  };
  return [sorting, change];
}
