import { queryOptions } from "@tanstack/react-query";
import { api, body, isStatus } from "@/lib/api/client";
import { keys } from "@/lib/api/keys";
import { SLOW } from "@/lib/api/polling";
import type { LocalMail } from "@/lib/api/types";

/** Mail that a service on one machine wrote into its folder; null where mail is really sent. */
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
