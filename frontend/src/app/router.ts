import { createRouter } from "@tanstack/react-router";
import { RouteError } from "./frame/RouteError";
import { clusterRoutes } from "./routes/clusters";
import { entryRoutes } from "./routes/entry";
import { frame, root } from "./routes/frame";
import { moneyRoutes } from "./routes/money";
import { organizationRoutes } from "./routes/organization";
import { parseSearch, stringifySearch } from "./search";

const tree = root.addChildren([
  ...entryRoutes,
  frame.addChildren([...organizationRoutes, ...clusterRoutes, ...moneyRoutes]),
]);

export const router = createRouter({
  routeTree: tree,
  defaultPreload: "intent",
  defaultErrorComponent: RouteError,
  defaultPendingMs: 300,
  scrollRestoration: true,
  parseSearch,
  stringifySearch,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
