import { QueryCache, QueryClient } from "@tanstack/react-query";
import { isStatus } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { intervalOf, noted } from "@/lib/api/polling";
import { Problem } from "@/lib/api/problem";

/**
 * What the server refused stays refused; what did not arrive is worth another try. So is what came
 * with the key that the session had just before it got another one.
 */
function worthRetry(failures: number, error: Error): boolean {
  if (isStatus(error, 401)) return failures < 1;
  if (error instanceof Problem && error.status >= 400 && error.status < 500) return false;
  return failures < 2;
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      // The session has ended: the frame notices it and leads to the sign-in.
      if (isStatus(error, 401)) queryClient.setQueryData(keys.session, null);
    },
  }),
  defaultOptions: {
    queries: {
      retry: worthRetry,
      staleTime: 1_000,
      refetchOnWindowFocus: true,
      refetchInterval: intervalOf,
      refetchIntervalInBackground: false,
      behavior: noted,
      // A request that cannot be sent fails, and the page says so; it does not wait without a word.
      networkMode: "always",
    },
    mutations: { retry: false, networkMode: "always" },
  },
});
