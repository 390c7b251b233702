import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { nameOf, partOf } from "@/lib/names";
import { messagesSearch, panelSearch } from "../search";
import { frame } from "./frame";

const clusters = createRoute({
  getParentRoute: () => frame,
  path: "/clusters",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/ClustersPage"), "ClustersPage"),
});

const cluster = createRoute({
  getParentRoute: () => frame,
  path: "/clusters/$clusterId",
  component: lazyRouteComponent(() => import("../pages/ClusterLayout"), "ClusterLayout"),
});

const clusterHome = createRoute({
  getParentRoute: () => cluster,
  path: "/",
  component: lazyRouteComponent(() => import("../pages/ClusterPage"), "ClusterPage"),
});

const clusterConnect = createRoute({
  getParentRoute: () => cluster,
  path: "/connect",
  component: lazyRouteComponent(() => import("../pages/ConnectPage"), "ConnectPage"),
});

const clusterTopics = createRoute({
  getParentRoute: () => cluster,
  path: "/topics",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/TopicsPage"), "TopicsPage"),
});

const clusterGroups = createRoute({
  getParentRoute: () => cluster,
  path: "/groups",
  component: lazyRouteComponent(() => import("../pages/GroupsPage"), "GroupsPage"),
});

const clusterCredentials = createRoute({
  getParentRoute: () => cluster,
  path: "/credentials",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/CredentialsPage"), "CredentialsPage"),
});

const clusterAcls = createRoute({
  getParentRoute: () => cluster,
  path: "/acls",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/AclsPage"), "AclsPage"),
});

const clusterQuotas = createRoute({
  getParentRoute: () => cluster,
  path: "/quotas",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/QuotasPage"), "QuotasPage"),
});

const clusterSettings = createRoute({
  getParentRoute: () => cluster,
  path: "/settings",
  component: lazyRouteComponent(
    () => import("../pages/ClusterSettingsPage"),
    "ClusterSettingsPage",
  ),
});

const topic = createRoute({
  getParentRoute: () => frame,
  path: "/clusters/$clusterId/topics/$topic",
  component: lazyRouteComponent(() => import("../pages/TopicLayout"), "TopicLayout"),
});

const topicMessages = createRoute({
  getParentRoute: () => topic,
  path: "/",
  validateSearch: messagesSearch,
  component: lazyRouteComponent(() => import("../pages/TopicMessagesPage"), "TopicMessagesPage"),
});

const topicConsumers = createRoute({
  getParentRoute: () => topic,
  path: "/consumers",
  component: lazyRouteComponent(() => import("../pages/TopicConsumersPage"), "TopicConsumersPage"),
});

const topicPartitions = createRoute({
  getParentRoute: () => topic,
  path: "/partitions",
  validateSearch: panelSearch,
  component: lazyRouteComponent(
    () => import("../pages/TopicPartitionsPage"),
    "TopicPartitionsPage",
  ),
});

const topicConfiguration = createRoute({
  getParentRoute: () => topic,
  path: "/configuration",
  component: lazyRouteComponent(
    () => import("../pages/TopicConfigurationPage"),
    "TopicConfigurationPage",
  ),
});

const group = createRoute({
  getParentRoute: () => frame,
  path: "/clusters/$clusterId/groups/$group",
  params: {
    parse: (parts) => ({ ...parts, group: nameOf(parts.group) }),
    stringify: (names) => ({ ...names, group: partOf(names.group) }),
  },
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/GroupPage"), "GroupPage"),
});

/** The routes of clusters and of what is in them. */
export const clusterRoutes = [
  clusters,
  cluster.addChildren([
    clusterHome,
    clusterConnect,
    clusterTopics,
    clusterGroups,
    clusterCredentials,
    clusterAcls,
    clusterQuotas,
    clusterSettings,
  ]),
  topic.addChildren([topicMessages, topicConsumers, topicPartitions, topicConfiguration]),
  group,
];
