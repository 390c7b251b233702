import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import type { AuditQuery } from "@/lib/api/types";

const PAGE_LIMIT = 100;

/** The pages of the audit log, newest entries first. */
export const auditLogQuery = (filter: AuditQuery) =>
  infiniteQueryOptions({
    queryKey: keys.auditLog(filter),
    queryFn: ({ pageParam }) =>
      body(
        api.GET("/api/v1/audit-log", {
          params: { query: { ...filter, limit: PAGE_LIMIT, cursor: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
