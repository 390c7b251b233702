import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import type { CloseRequest, Organization, OrganizationChange } from "@/lib/api/types";

/** The organization that the session works in. */
export const organizationQuery = queryOptions({
  queryKey: keys.organization,
  queryFn: () => body(api.GET("/api/v1/organizations/current")),
});

/** A change of the organization. `force`: make it even if it locks the person out. */
export interface Change {
  change: OrganizationChange;
  force?: boolean;
}

export function useUpdateOrganization(): UseMutationResult<Organization, Error, Change> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ change, force }: Change) =>
      body(
        api.PATCH("/api/v1/organizations/current", {
          params: { query: force ? { force: true } : {} },
          body: change,
        }),
      ),
    onSuccess: (changed) => {
      client.setQueryData(keys.organization, changed);
      return client.invalidateQueries({ queryKey: keys.session });
    },
  });
}

/** Closes the organization. Only its invoices can be read afterwards. */
export function useCloseOrganization(): UseMutationResult<Organization, Error, CloseRequest> {
  return useMutation({
    mutationFn: (input: CloseRequest) =>
      body(api.POST("/api/v1/organizations/current:close", { body: input })),
    onSuccess: () => {
      location.assign("/invoices");
    },
  });
}
