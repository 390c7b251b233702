import type { Cluster, FirstSteps } from "@/lib/api/types";

/** The first steps of so many clusters are followed on the overview, of the newest ones. */
export const FOLLOWED_MAX = 3;

/** Tells whether all first steps are done. What is not known is not done. */
export function areDone(steps: FirstSteps): boolean {
  return steps.credential && steps.produced === true && steps.consumed === true;
}

/** Returns the clusters whose first steps the overview follows, the newest first. */
export function followedOf(clusters: readonly Cluster[]): Cluster[] {
  return clusters
    .filter(({ deleted_at }) => deleted_at === null)
    .toSorted((a, b) => b.created_at.localeCompare(a.created_at))
    .slice(0, FOLLOWED_MAX);
}
