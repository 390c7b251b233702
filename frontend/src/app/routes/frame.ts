import {
  createRootRoute,
  createRoute,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { sessionQuery } from "@/lib/api/session";
import { NotFound } from "../frame/NotFound";
import { queryClient } from "../queryClient";

/** Where every address begins. */
export const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });

/** What stands around every page of somebody who is signed in. */
export const frame = createRoute({
  getParentRoute: () => root,
  id: "frame",
  beforeLoad: async ({ location }) => {
    const session = await queryClient.ensureQueryData(sessionQuery);
    if (session === null) {
      // TanStack Router's own way to lead elsewhere is to throw.
      throw redirect({ to: "/signin", search: { next: location.href } });
    }
  },
  component: lazyRouteComponent(() => import("../frame/Frame"), "Frame"),
});
