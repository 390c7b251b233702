import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { sessionQuery } from "@/features/session/api/session";
import { NotFound } from "./frame/NotFound";
import { RouteError } from "./frame/RouteError";
import { queryClient } from "./queryClient";
import { costsSearch, oneOf, text, usageSearch, whole } from "./search";

/** `panel` names the side panel that is open, so that every view is a URL. */
export interface PanelSearch {
  panel?: string;
}
const panelSearch = (search: Record<string, unknown>): PanelSearch => ({
  panel: text(search.panel),
});

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/signin",
  validateSearch: (search: Record<string, unknown>): { next?: string } => ({
    next: localPath(search.next),
  }),
  component: lazyRouteComponent(() => import("./pages/SignInPage"), "SignInPage"),
});

/** A path of this console; anything else would let a link lead elsewhere after the sign-in. */
function localPath(value: unknown): string | undefined {
  const path = text(value);
  return path && /^\/(?![/\\])/.test(path) ? path : undefined;
}

const signUp = createRoute({
  getParentRoute: () => root,
  path: "/signup",
  component: lazyRouteComponent(() => import("./pages/SignUpPage"), "SignUpPage"),
});

const verify = createRoute({
  getParentRoute: () => root,
  path: "/verify",
  validateSearch: (search: Record<string, unknown>): { token?: string } => ({
    token: text(search.token),
  }),
  component: lazyRouteComponent(() => import("./pages/VerifyPage"), "VerifyPage"),
});

const frame = createRoute({
  getParentRoute: () => root,
  id: "frame",
  beforeLoad: async ({ location }) => {
    const session = await queryClient.ensureQueryData(sessionQuery);
    if (session === null) {
      // TanStack Router's own way to lead elsewhere is to throw.
      throw redirect({ to: "/signin", search: { next: location.href } });
    }
  },
  component: lazyRouteComponent(() => import("./frame/Frame"), "Frame"),
});

const overview = createRoute({
  getParentRoute: () => frame,
  path: "/",
  component: lazyRouteComponent(() => import("./pages/OverviewPage"), "OverviewPage"),
});

const clusters = createRoute({
  getParentRoute: () => frame,
  path: "/clusters",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("./pages/ClustersPage"), "ClustersPage"),
});

const money = createRoute({
  getParentRoute: () => frame,
  id: "money",
  component: lazyRouteComponent(() => import("./pages/MoneyLayout"), "MoneyLayout"),
});

const usage = createRoute({
  getParentRoute: () => money,
  path: "/usage",
  validateSearch: usageSearch,
  component: lazyRouteComponent(() => import("./pages/UsagePage"), "UsagePage"),
});

const costs = createRoute({
  getParentRoute: () => money,
  path: "/usage/costs",
  validateSearch: costsSearch,
  component: lazyRouteComponent(() => import("./pages/CostsPage"), "CostsPage"),
});

const budgets = createRoute({
  getParentRoute: () => money,
  path: "/usage/budgets",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("./pages/BudgetsPage"), "BudgetsPage"),
});

const prices = createRoute({
  getParentRoute: () => money,
  path: "/prices",
  component: lazyRouteComponent(() => import("./pages/PricesPage"), "PricesPage"),
});

const invoices = createRoute({
  getParentRoute: () => frame,
  path: "/invoices",
  component: lazyRouteComponent(() => import("./pages/InvoicesPage"), "InvoicesPage"),
});

const invoice = createRoute({
  getParentRoute: () => frame,
  path: "/invoices/$invoiceId",
  component: lazyRouteComponent(() => import("./pages/InvoicePage"), "InvoicePage"),
});

const access = createRoute({
  getParentRoute: () => frame,
  path: "/access",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("./pages/AccessPage"), "AccessPage"),
});

const mail = createRoute({
  getParentRoute: () => frame,
  path: "/mail",
  component: lazyRouteComponent(() => import("./pages/MailPage"), "MailPage"),
});

const settings = createRoute({
  getParentRoute: () => frame,
  path: "/settings",
  component: lazyRouteComponent(() => import("./pages/SettingsPage"), "SettingsPage"),
});

const cluster = createRoute({
  getParentRoute: () => frame,
  path: "/clusters/$clusterId",
  component: lazyRouteComponent(() => import("./pages/ClusterLayout"), "ClusterLayout"),
});

const clusterHome = createRoute({
  getParentRoute: () => cluster,
  path: "/",
  component: lazyRouteComponent(() => import("./pages/ClusterPage"), "ClusterPage"),
});

const clusterConnect = createRoute({
  getParentRoute: () => cluster,
  path: "/connect",
  component: lazyRouteComponent(() => import("./pages/ConnectPage"), "ConnectPage"),
});

const clusterTopics = createRoute({
  getParentRoute: () => cluster,
  path: "/topics",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("./pages/TopicsPage"), "TopicsPage"),
});

const clusterGroups = createRoute({
  getParentRoute: () => cluster,
  path: "/groups",
  component: lazyRouteComponent(() => import("./pages/GroupsPage"), "GroupsPage"),
});

const clusterCredentials = createRoute({
  getParentRoute: () => cluster,
  path: "/credentials",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("./pages/CredentialsPage"), "CredentialsPage"),
});

const clusterAcls = createRoute({
  getParentRoute: () => cluster,
  path: "/acls",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("./pages/AclsPage"), "AclsPage"),
});

const clusterSettings = createRoute({
  getParentRoute: () => cluster,
  path: "/settings",
  component: lazyRouteComponent(() => import("./pages/ClusterSettingsPage"), "ClusterSettingsPage"),
});

const topic = createRoute({
  getParentRoute: () => frame,
  path: "/clusters/$clusterId/topics/$topic",
  component: lazyRouteComponent(() => import("./pages/TopicLayout"), "TopicLayout"),
});

export interface MessagesSearch {
  from?: "newest" | "oldest" | "offset" | "timestamp" | "live";
  partition?: number;
  offset?: number;
  timestamp?: string;
  panel?: string;
}

const STARTS = ["newest", "oldest", "offset", "timestamp", "live"] as const;

const topicMessages = createRoute({
  getParentRoute: () => topic,
  path: "/",
  validateSearch: (search: Record<string, unknown>): MessagesSearch => ({
    from: oneOf(STARTS, search.from),
    partition: whole(search.partition),
    offset: whole(search.offset),
    timestamp: text(search.timestamp),
    panel: text(search.panel),
  }),
  component: lazyRouteComponent(() => import("./pages/TopicMessagesPage"), "TopicMessagesPage"),
});

const topicConsumers = createRoute({
  getParentRoute: () => topic,
  path: "/consumers",
  component: lazyRouteComponent(() => import("./pages/TopicConsumersPage"), "TopicConsumersPage"),
});

const topicPartitions = createRoute({
  getParentRoute: () => topic,
  path: "/partitions",
  component: lazyRouteComponent(() => import("./pages/TopicPartitionsPage"), "TopicPartitionsPage"),
});

const topicConfiguration = createRoute({
  getParentRoute: () => topic,
  path: "/configuration",
  component: lazyRouteComponent(
    () => import("./pages/TopicConfigurationPage"),
    "TopicConfigurationPage",
  ),
});

const group = createRoute({
  getParentRoute: () => frame,
  path: "/clusters/$clusterId/groups/$group",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("./pages/GroupPage"), "GroupPage"),
});

const tree = root.addChildren([
  signIn,
  signUp,
  verify,
  frame.addChildren([
    overview,
    clusters,
    money.addChildren([usage, costs, budgets, prices]),
    invoices,
    invoice,
    access,
    mail,
    settings,
    cluster.addChildren([
      clusterHome,
      clusterConnect,
      clusterTopics,
      clusterGroups,
      clusterCredentials,
      clusterAcls,
      clusterSettings,
    ]),
    topic.addChildren([topicMessages, topicConsumers, topicPartitions, topicConfiguration]),
    group,
  ]),
]);

export const router = createRouter({
  routeTree: tree,
  defaultPreload: "intent",
  defaultErrorComponent: RouteError,
  defaultPendingMs: 300,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
