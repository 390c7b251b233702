/** Queries of a visible page ask again this often; a hidden page does not ask at all. */
export const LIVE = { refetchInterval: 2_000, refetchIntervalInBackground: false } as const;

/** For what changes seldom: readiness, mail, lists of secrets. */
export const SLOW = { refetchInterval: 10_000, refetchIntervalInBackground: false } as const;
