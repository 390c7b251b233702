import { queryOptions } from "@tanstack/react-query";
import { api, body, isStatus } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { SLOW } from "@/lib/api/polling";
import type { LocalMail } from "@/lib/api/types";

/** The mails that a service in local mode wrote into its folder; null where mail is sent. */
export const localMailQuery = queryOptions({
  queryKey: keys.localMail,
  queryFn: async (): Promise<LocalMail[] | null> => {
    try {
      return (await body(api.GET("/api/v1/local-mail"))).items;
    } catch (error) {
      if (isStatus(error, 404)) return null;
      throw error;
    }
  },
  ...SLOW,
});
