import { createRoute } from "@tanstack/react-router";
import { nameOf, partOf } from "@/lib/names";
import { messagesSearch, panelSearch } from "../search";
import { frame } from "./frame";
import { page } from "./page";

const clusters = createRoute({
  getParentRoute: () => frame,
  path: "/clusters",
  validateSearch: panelSearch,
  component: page(() => import("../pages/ClustersPage"), "ClustersPage"),
});

const cluster = createRoute({
  getParentRoute: () => frame,
  path: "/clusters/$clusterId",
  component: page(() => import("../pages/ClusterLayout"), "ClusterLayout"),
});

const clusterHome = createRoute({
  getParentRoute: () => cluster,
  path: "/",
  component: page(() => import("../pages/ClusterPage"), "ClusterPage"),
});

const clusterConnect = createRoute({
  getParentRoute: () => cluster,
  path: "/connect",
  component: page(() => import("../pages/ConnectPage"), "ConnectPage"),
});

const clusterTopics = createRoute({
  getParentRoute: () => cluster,
  path: "/topics",
  validateSearch: panelSearch,
  component: page(() => import("../pages/TopicsPage"), "TopicsPage"),
});

const clusterGroups = createRoute({
  getParentRoute: () => cluster,
  path: "/groups",
  component: page(() => import("../pages/GroupsPage"), "GroupsPage"),
});

const clusterCredentials = createRoute({
  getParentRoute: () => cluster,
  path: "/credentials",
  validateSearch: panelSearch,
  component: page(() => import("../pages/CredentialsPage"), "CredentialsPage"),
});

const clusterAcls = createRoute({
  getParentRoute: () => cluster,
  path: "/acls",
  validateSearch: panelSearch,
  component: page(() => import("../pages/AclsPage"), "AclsPage"),
});

const clusterQuotas = createRoute({
  getParentRoute: () => cluster,
  path: "/quotas",
  validateSearch: panelSearch,
  component: page(() => import("../pages/QuotasPage"), "QuotasPage"),
});

const clusterSettings = createRoute({
  getParentRoute: () => cluster,
  path: "/settings",
  component: page(() => import("../pages/ClusterSettingsPage"), "ClusterSettingsPage"),
});

const topic = createRoute({
  getParentRoute: () => frame,
  path: "/clusters/$clusterId/topics/$topic",
  component: page(() => import("../pages/TopicLayout"), "TopicLayout"),
});

const topicMessages = createRoute({
  getParentRoute: () => topic,
  path: "/",
  validateSearch: messagesSearch,
  component: page(() => import("../pages/TopicMessagesPage"), "TopicMessagesPage"),
});

const topicConsumers = createRoute({
  getParentRoute: () => topic,
  path: "/consumers",
  component: page(() => import("../pages/TopicConsumersPage"), "TopicConsumersPage"),
});

const topicPartitions = createRoute({
  getParentRoute: () => topic,
  path: "/partitions",
  validateSearch: panelSearch,
  component: page(() => import("../pages/TopicPartitionsPage"), "TopicPartitionsPage"),
});

const topicConfiguration = createRoute({
  getParentRoute: () => topic,
  path: "/configuration",
  component: page(() => import("../pages/TopicConfigurationPage"), "TopicConfigurationPage"),
});

const group = createRoute({
  getParentRoute: () => frame,
  path: "/clusters/$clusterId/groups/$group",
  params: {
    parse: (parts) => ({ ...parts, group: nameOf(parts.group) }),
    stringify: (names) => ({ ...names, group: partOf(names.group) }),
  },
  validateSearch: panelSearch,
  component: page(() => import("../pages/GroupPage"), "GroupPage"),
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
