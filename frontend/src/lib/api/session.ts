import { queryOptions } from "@tanstack/react-query";
import { api, body, isStatus, setCsrfToken } from "./client";
import { keys } from "./keys";
import type { Session } from "./types";

async function readSession(): Promise<Session | null> {
  try {
    const session = await body(api.GET("/api/v1/session"));
    setCsrfToken(session.csrf_token);
    return session.user ? session : null;
  } catch (error) {
    if (isStatus(error, 401)) return null;
    throw error;
  }
}

/** The session; null where nobody is signed in. */
export const sessionQuery = queryOptions({
  queryKey: keys.session,
  queryFn: readSession,
  staleTime: 60_000,
});
