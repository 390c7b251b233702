import { useSyncExternalStore } from "react";

/** Where times are shown: in the zone of the browser, or in UTC. */
export type Zone = "local" | "utc";

const KEY = "freshet.zone";
const listeners = new Set<() => void>();

function kept(): Zone {
  try {
    return localStorage.getItem(KEY) === "utc" ? "utc" : "local";
  } catch {
    // A browser may keep nothing for a page; the choice then lasts as long as the page.
    return "local";
  }
}

let zone: Zone = kept();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** Returns the zone in which times are shown. It is one for the whole console. */
export function useZone(): Zone {
  return useSyncExternalStore(subscribe, () => zone);
}

/** Chooses the zone in which times are shown, and keeps the choice in this browser. */
export function chooseZone(next: Zone): void {
  zone = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // See `kept`.
  }
  for (const listener of listeners) listener();
}
