import {
  queryOptions,
  useMutation,
  type UseMutationResult,
  useQueryClient,
} from "@tanstack/react-query";
import { api, body, done, isCode, isStatus } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { SLOW } from "@/lib/api/polling";
import type { LocalMail } from "@/lib/api/types";

/** What is known of the local mails; `locked` until this browser has shown the start's token. */
export type LocalMails = LocalMail[] | "locked" | null;

/** The mails that a service in local mode wrote into its folder; null where mail is sent. */
export const localMailQuery = queryOptions({
  queryKey: keys.localMail,
  queryFn: async (): Promise<LocalMails> => {
    try {
      return (await body(api.GET("/api/v1/local-mail"))).items;
    } catch (error) {
      if (isStatus(error, 404)) return null;
      if (isCode(error, "mail_token_required")) return "locked";
      throw error;
    }
  },
  ...SLOW,
});

/** Shows the token that the service's start printed. This browser may read the mails then. */
export function useOpenMail(): UseMutationResult<void, Error, string> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (token: string) => done(api.POST("/api/v1/local-mail", { body: { token } })),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.localMail }),
  });
}
