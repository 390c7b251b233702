/** How often the queries of a visible page are repeated. Those of a hidden page are not. */
export const LIVE = { refetchInterval: 2_000, refetchIntervalInBackground: false } as const;

/** The same for data that seldom changes: readiness, mail, lists of secrets. */
export const SLOW = { refetchInterval: 10_000, refetchIntervalInBackground: false } as const;
