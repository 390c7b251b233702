import type { Cluster, Organization } from "@/lib/api/types";

type Kind = NonNullable<Organization["traffic_limit"]>["kind"];

interface Words {
  /** The condition of a cluster that has the limit. */
  type: string;
  /** What holds, in two words. */
  mark: string;
  effect: string;
}

/** By the kind of a limit, the strictest first. */
const WORDS: Record<Kind, Words> = {
  refuse: {
    type: "FetchSuspended",
    mark: "Traffic refused",
    effect:
      "Producers and consumers are refused with POLICY_VIOLATION. Consumers stay in their groups " +
      "and go on by themselves, offsets are committed, and every record is kept. What is stored " +
      "goes on being billed.",
  },
  refuse_produce: {
    type: "ProduceSuspended",
    mark: "Produce refused",
    effect:
      "Producers are refused with POLICY_VIOLATION. Consumers go on reading, offsets are " +
      "committed, and every record is kept.",
  },
  throttle: {
    type: "Throttled",
    mark: "Slowed down",
    effect:
      "Producers and consumers are slowed down to this rate together. Nothing is refused, and " +
      "all of it is billed.",
  },
};

/** What a limit of a cluster's traffic is, why it holds, and what clients get. */
export interface TrafficLimit {
  mark: string;
  reason: string;
  effect: string;
}

/** Returns the limit of a cluster's traffic that its conditions say; undefined without one. */
export function trafficLimitOf({ status }: Cluster): TrafficLimit | undefined {
  for (const { type, mark, effect } of Object.values(WORDS)) {
    const holds = status.conditions.find((one) => one.type === type && one.status !== "false");
    if (holds) return { mark, reason: holds.message, effect };
  }
  return undefined;
}

/** Returns what clients get of all clusters of an organization with a limit. */
export const trafficEffect = (kind: Kind): string => WORDS[kind].effect;
