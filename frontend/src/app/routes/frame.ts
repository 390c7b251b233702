import { createRootRoute, createRoute, Outlet, redirect } from "@tanstack/react-router";
import { sessionQuery } from "@/lib/api/session";
import { NotFound } from "../frame/NotFound";
import { queryClient } from "../queryClient";
import { page } from "./page";

/** The root of all routes. */
export const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });

/** The frame around every page for people who are signed in. */
export const frame = createRoute({
  getParentRoute: () => root,
  id: "frame",
  beforeLoad: async ({ location }) => {
    const session = await queryClient.ensureQueryData(sessionQuery);
    if (session === null) {
      // TanStack Router redirects by throwing.
      throw redirect({ to: "/signin", search: { next: location.href } });
    }
  },
  component: page(() => import("../frame/Frame"), "Frame"),
});
