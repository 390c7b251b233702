/**
 * Which addresses of the API a query reads, and the digests of their answers: what the service says
 * of an address (`watch.ts`) is said of the queries that read it.
 */

/** The header in which the service gives an answer's digest to whoever sends it. */
export const DIGEST = "Freshet-Digest";

const byQuery = new Map<string, ReadonlySet<string>>();
const digests = new Map<string, string>();
let noting: Set<string> | undefined;

/** Runs the reading of a query, and notes what it asks for at once: of a list its first page. */
export function noteAddresses<T>(queryHash: string, read: () => T): T {
  noting = new Set();
  try {
    return read();
  } finally {
    byQuery.set(queryHash, noting);
    noting = undefined;
  }
}

/** Notes that the reading that goes on asks for an address: path and search. */
export function noteAddress(address: string): void {
  noting?.add(address);
}

/** Notes the digest of an answer; null where it came without one. */
export function noteDigest(address: string, digest: string | null): void {
  if (digest === null) digests.delete(address);
  else digests.set(address, digest);
}

/** Returns the addresses that a query read last. */
export function addressesOf(queryHash: string): readonly string[] {
  return [...(byQuery.get(queryHash) ?? [])];
}

/** Returns the digest of what was read last at an address. */
export function digestAt(address: string): string | undefined {
  return digests.get(address);
}
