import { queryOptions } from "@tanstack/react-query";
import { keys } from "@/lib/api/keys";
import { SLOW } from "@/lib/api/polling";

/** The body of `/readyz`, which answers 200 where all parts are ready and 503 otherwise. */
export interface Readiness {
  ready: boolean;
  parts: Record<string, { ready: boolean; message: string }>;
}

/** The names of the parts that are not ready. */
export function failingParts({ parts }: Readiness): string[] {
  return Object.entries(parts)
    .filter(([, part]) => !part.ready)
    .map(([name]) => name);
}

const WAIT_MS = 5_000;

export const readinessQuery = queryOptions({
  queryKey: keys.readiness,
  queryFn: async (): Promise<Readiness> => {
    const response = await fetch("/readyz", {
      headers: { Accept: "application/json" },
      // A service that hangs is not ready.
      signal: AbortSignal.timeout(WAIT_MS),
    });
    return (await response.json()) as Readiness;
  },
  retry: false,
  ...SLOW,
});
