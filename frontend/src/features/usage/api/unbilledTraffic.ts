import { queryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { SLOW } from "@/lib/api/polling";

/** What clients of a cluster sent and were sent since its brokers started, and is not billed. */
export const unbilledTrafficQuery = (clusterId: string) =>
  queryOptions({
    queryKey: keys.unbilledTraffic(clusterId),
    queryFn: () => {
      const params = { path: { cluster_id: clusterId } };
      return body(api.GET("/api/v1/clusters/{cluster_id}/unbilled-traffic", { params }));
    },
    ...SLOW,
  });
