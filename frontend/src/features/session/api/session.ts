import {
  type QueryClient,
  useMutation,
  useQueryClient,
  type UseMutationResult,
} from "@tanstack/react-query";
import { api, done } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { sessionQuery } from "@/lib/api/session";

/** Drops all data of the former session and reads the new session with its CSRF token. */
async function renew(client: QueryClient): Promise<void> {
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== keys.session[0] });
  await client.fetchQuery({ ...sessionQuery, staleTime: 0 });
}

export interface SignIn {
  email: string;
  password: string;
  /** A code of an authenticator app, or a recovery code. */
  code?: string;
  /** The token of a mail's link by which this browser need not wait. */
  link?: string;
}

/** Signs in. Once it has ended, the session's CSRF token is known. */
export function useSignIn(): UseMutationResult<void, Error, SignIn> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (input: SignIn) => {
      await done(api.POST("/api/v1/session", { body: input }));
      await renew(client);
    },
  });
}

/** Requests a mail with a link to sign in by without a wait. */
export function useSignInLink(): UseMutationResult<void, Error, string> {
  return useMutation({
    mutationFn: (email: string) => done(api.POST("/api/v1/session/link", { body: { email } })),
  });
}

export interface SignUp extends Omit<SignIn, "code" | "link"> {
  organization_name: string;
}

/** Signs up and in. The service also makes a first cluster with a sample topic. */
export function useSignUp(): UseMutationResult<void, Error, SignUp> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (input: SignUp) => {
      await done(api.POST("/api/v1/signup", { body: { ...input, session: true } }));
      await renew(client);
    },
  });
}

/**
 * Signs out. The page is loaded anew, so that nothing of the session is left in memory: neither
 * what was read nor passwords that were just made.
 */
export function useSignOut(): UseMutationResult<void, Error, void> {
  return useMutation({
    mutationFn: () => done(api.DELETE("/api/v1/session")),
    onSuccess: () => {
      location.assign("/signin");
    },
  });
}

/** Switches to another organization of the user and loads the page anew. */
export function useSwitchOrganization(): UseMutationResult<void, Error, string> {
  return useMutation({
    mutationFn: (organizationId: string) =>
      done(api.PATCH("/api/v1/session", { body: { organization_id: organizationId } })),
    onSuccess: () => {
      location.assign("/");
    },
  });
}

/** Requests another mail with a link that confirms the address. */
export function useRequestVerification(): UseMutationResult<void, Error, string> {
  return useMutation({
    mutationFn: (email: string) =>
      done(api.POST("/api/v1/signup/verification", { body: { email } })),
  });
}

interface Proof {
  /** The token in the mail's link. */
  token: string;
  /** The password of the sign-up; not needed where the account is signed in. */
  password?: string;
}

/** Confirms a mail address by a mail's link, for who shows that they signed up with it. */
export function useVerifyMail(): UseMutationResult<void, Error, Proof> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (input: Proof) => done(api.POST("/api/v1/signup/verify", { body: input })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.session }),
  });
}
