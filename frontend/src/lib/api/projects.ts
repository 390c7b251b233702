import { queryOptions } from "@tanstack/react-query";
import { api, body } from "./client";
import { keys } from "./keys";
import { allPages } from "./pages";
import { SLOW } from "./polling";

/** The projects that the person sees, with their permissions in each. */
export const projectListQuery = queryOptions({
  queryKey: keys.projects,
  queryFn: () =>
    allPages((cursor) => body(api.GET("/api/v1/projects", { params: { query: { cursor } } }))),
  ...SLOW,
});
