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
import type { Enrolment, PasswordChange, UserSession } from "@/lib/api/types";

/** The sessions of the person. */
export const userSessionsQuery = queryOptions({
  queryKey: keys.userSessions,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/sessions", { params: { query: { cursor } } }))),
  ...SLOW,
});

/** Ends another session of the person. */
export function useEndSession(): UseMutationResult<void, Error, UserSession> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: UserSession) =>
      done(api.DELETE("/api/v1/sessions/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.userSessions }),
  });
}

/** Ends all sessions of the person but this one. */
export function useEndOtherSessions(): UseMutationResult<void, Error, void> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => done(api.POST("/api/v1/sessions:end-others")),
    onSettled: () => client.invalidateQueries({ queryKey: keys.userSessions }),
  });
}

/** Changes the password. All other sessions end. */
export function useChangePassword(): UseMutationResult<void, Error, PasswordChange> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: PasswordChange) =>
      done(api.POST("/api/v1/session/password", { body: input })),
    // The session has a new CSRF token as well.
    onSuccess: () => client.invalidateQueries({ queryKey: keys.session }),
    onSettled: () => client.invalidateQueries({ queryKey: keys.userSessions }),
  });
}

/** Requests a mail with a link. The answer is the same for an address without an account. */
export function useForgottenPassword(): UseMutationResult<void, Error, { email: string }> {
  return useMutation({
    mutationFn: (input: { email: string }) =>
      done(api.POST("/api/v1/password-reset", { body: input })),
  });
}

/** Sets a new password by the token in a mail's link. */
export function useResetPassword(): UseMutationResult<
  void,
  Error,
  { token: string; password: string }
> {
  return useMutation({
    mutationFn: (input: { token: string; password: string }) =>
      done(api.POST("/api/v1/password-reset/confirm", { body: input })),
  });
}

/** Makes a secret for an authenticator app. It takes effect once a code was confirmed. */
export function useEnrol(): UseMutationResult<Enrolment, Error, Password> {
  return useMutation({
    mutationFn: (input: Password) => body(api.POST("/api/v1/session/totp", { body: input })),
  });
}

interface Password {
  password: string;
}

interface Code {
  code: string;
}

/** Confirms the app with its first code. Returns the recovery codes, which are shown only once. */
export function useConfirmApp(): UseMutationResult<string[], Error, Code> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (input: Code) =>
      (await body(api.POST("/api/v1/session/totp/confirm", { body: input }))).recovery_codes,
    onSuccess: () => client.invalidateQueries({ queryKey: keys.userSessions }),
  });
}

/** Turns the second factor off. */
export function useRemoveApp(): UseMutationResult<void, Error, Password & Code> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: Password & Code) =>
      done(api.DELETE("/api/v1/session/totp", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.session }),
  });
}

/** Replaces the recovery codes by new ones. */
export function useRecoveryCodes(): UseMutationResult<string[], Error, Code> {
  return useMutation({
    mutationFn: async (input: Code) =>
      (await body(api.POST("/api/v1/session/recovery-codes", { body: input }))).recovery_codes,
  });
}
