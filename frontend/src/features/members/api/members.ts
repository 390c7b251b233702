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

/** Who belongs to the organization. */
export const memberListQuery = queryOptions({
  queryKey: keys.members,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/members", { params: { query: { cursor } } }))),
  ...SLOW,
});

/** Who was asked to join, and what came of it. */
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

/** Takes somebody out of the organization: their sessions here and roles end. */
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

/** Sends the mail once more, with a new link. */
export function useResendInvitation(): UseMutationResult<void, Error, Invitation> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Invitation) =>
      done(api.POST("/api/v1/invitations/{id}:resend", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.invitations }),
  });
}

/** Takes an invitation back: its link has no effect any more. */
export function useRevokeInvitation(): UseMutationResult<void, Error, Invitation> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Invitation) =>
      done(api.DELETE("/api/v1/invitations/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.invitations }),
  });
}

/** Joins with the token of a mail's link; without an account it makes one. */
export function useAcceptInvitation(): UseMutationResult<Accepted, Error, Acceptance> {
  return useMutation({
    mutationFn: (input: Acceptance) =>
      body(api.POST("/api/v1/invitations/accept", { body: input })),
  });
}
