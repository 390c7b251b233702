import { useSyncExternalStore } from "react";

/** A credential whose password this page still holds, because it was just made here. */
export interface FreshCredential {
  username: string;
  password: string;
  mechanism: string;
}

/** The credentials by cluster id. They are in memory only, so a reload of the page drops them. */
let known: ReadonlyMap<string, FreshCredential> = new Map();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function replace(next: ReadonlyMap<string, FreshCredential>): void {
  known = next;
  for (const listener of listeners) listener();
}

/** Keeps a just-made credential, so that snippets of its cluster run as pasted. */
export function rememberCredential(clusterId: string, credential: FreshCredential): void {
  replace(new Map(known).set(clusterId, credential));
}

/** Forgets a credential that was deleted. */
export function forgetCredential(clusterId: string, username: string): void {
  if (known.get(clusterId)?.username !== username) return;
  const rest = new Map(known);
  rest.delete(clusterId);
  replace(rest);
}

/** The last credential made for a cluster in this page, if any. */
export function useFreshCredential(clusterId: string): FreshCredential | undefined {
  return useSyncExternalStore(subscribe, () => known.get(clusterId));
}
