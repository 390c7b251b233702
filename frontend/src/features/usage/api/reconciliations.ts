import { queryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { repeated } from "@/lib/api/polling";

/** At most so many days are shown. */
const DAYS_MAX = 400;

/** The reconciliations of usage with the log, newest day first. */
export const reconciliationsQuery = (clusterId: string | undefined) =>
  queryOptions({
    queryKey: keys.reconciliations({ clusterId }),
    queryFn: () =>
      allPages(
        (cursor) =>
          body(
            api.GET("/api/v1/usage/reconciliations", {
              params: { query: { cursor, cluster_id: clusterId, limit: 200 } },
            }),
          ),
        DAYS_MAX,
      ),
    ...repeated(60_000),
  });
