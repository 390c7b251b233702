import { queryOptions } from "@tanstack/react-query";
import { keys } from "@/lib/api/keys";
import { SLOW } from "@/lib/api/polling";

/** Which parts of the service are not ready; none when all is well. */
export interface Readiness {
  failing: string[];
}

/** `/readyz` answers each part by name; it is 503 while one of them is not ready. */
export function failingParts(answer: unknown): string[] {
  if (typeof answer !== "object" || answer === null) return [];
  const inner = "parts" in answer ? answer.parts : "checks" in answer ? answer.checks : answer;
  if (typeof inner !== "object" || inner === null) return [];
  return Object.entries(inner)
    .filter(([, state]) => !isReady(state))
    .map(([name]) => name);
}

function isReady(state: unknown): boolean {
  if (typeof state === "object" && state !== null) {
    if ("ready" in state) return isReady(state.ready);
    if ("ok" in state) return isReady(state.ok);
    if ("status" in state) return isReady(state.status);
  }
  return state === true || state === "ok" || state === "ready";
}

export const readinessQuery = queryOptions({
  queryKey: keys.readiness,
  queryFn: async (): Promise<Readiness> => {
    const response = await fetch("/readyz", { headers: { Accept: "application/json" } });
    return { failing: failingParts(await response.json()) };
  },
  retry: false,
  ...SLOW,
});
