import { queryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { SLOW } from "@/lib/api/polling";

/** Open and closed incidents of the organization's clusters and of the service as a whole. */
export const incidentListQuery = queryOptions({
  queryKey: keys.incidents,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/incidents", { params: { query: { cursor } } }))),
  ...SLOW,
});
