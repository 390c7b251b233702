import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body, done } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { allPages } from "@/lib/api/pages";
import { SLOW } from "@/lib/api/polling";
import type {
  Acceptance,
  Accepted,
  Invitation,
  Member,
  NewInvitation,
  Role,
} from "@/lib/api/types";

/** The members of the organization. */
export const memberListQuery = queryOptions({
  queryKey: keys.members,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/members", { params: { query: { cursor } } }))),
  ...SLOW,
});

/** The invitations, with their states. */
export const invitationListQuery = queryOptions({
  queryKey: keys.invitations,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/invitations", { params: { query: { cursor } } }))),
  ...SLOW,
});

/** Gives a member another role. */
export function useUpdateMember(id: string): UseMutationResult<Member, Error, { role: Role }> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (change: { role: Role }) =>
      body(api.PATCH("/api/v1/members/{id}", { params: { path: { id } }, body: change })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.members }),
  });
}

/** Removes a member from the organization. Their sessions and roles in it end. */
export function useRemoveMember(): UseMutationResult<void, Error, Member> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Member) =>
      done(api.DELETE("/api/v1/members/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.members }),
  });
}

/** Sends a mail with a link to join. */
export function useInvite(): UseMutationResult<Invitation, Error, NewInvitation> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: NewInvitation) => body(api.POST("/api/v1/invitations", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.invitations }),
  });
}

/** Sends the mail of an invitation again, with a new link. */
export function useResendInvitation(): UseMutationResult<void, Error, Invitation> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Invitation) =>
      done(api.POST("/api/v1/invitations/{id}:resend", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.invitations }),
  });
}

/** Revokes an invitation. Its link stops working. */
export function useRevokeInvitation(): UseMutationResult<void, Error, Invitation> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Invitation) =>
      done(api.DELETE("/api/v1/invitations/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.invitations }),
  });
}

/** Accepts an invitation by the token of its link. A person without an account gets one. */
export function useAcceptInvitation(): UseMutationResult<Accepted, Error, Acceptance> {
  return useMutation({
    mutationFn: (input: Acceptance) =>
      body(api.POST("/api/v1/invitations/accept", { body: input })),
  });
}
