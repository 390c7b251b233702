/**
 * The one place where query keys are made. They nest, so that invalidating `keys.cluster(id)`
 * also refreshes everything inside that cluster.
 */
const cluster = (id: string) => ["clusters", "one", id] as const;
const topics = (id: string) => [...cluster(id), "topics"] as const;
const topic = (id: string, name: string) => [...topics(id), "one", name] as const;
const groups = (id: string) => [...cluster(id), "groups"] as const;

export const keys = {
  session: ["session"] as const,
  userSessions: ["user-sessions"] as const,
  readiness: ["readiness"] as const,
  organization: ["organization"] as const,
  incidents: ["incidents"] as const,
  limits: (clusterId?: string) => ["limits", clusterId ?? null] as const,
  limitRequests: ["limit-requests"] as const,
  staff: (what: string) => ["staff", what] as const,
  regions: ["regions"] as const,
  localMail: ["local-mail"] as const,
  members: ["members"] as const,
  invitations: ["invitations"] as const,
  projects: ["projects"] as const,
  roleBindings: ["role-bindings"] as const,
  serviceAccounts: ["service-accounts"] as const,
  apiKeys: ["api-keys"] as const,
  operation: (id: string) => ["operations", id] as const,
  clusters: ["clusters"] as const,
  clusterList: ["clusters", "list"] as const,
  cluster,
  topics,
  unbilledTraffic: (id: string) => [...cluster(id), "unbilled-traffic"] as const,
  topicList: (id: string) => [...topics(id), "list"] as const,
  topic,
  deletedTopics: (id: string) => [...topics(id), "deleted"] as const,
  orphanedTopics: (id: string) => [...topics(id), "orphaned"] as const,
  messages: (id: string, name: string, start: object) =>
    [...topic(id, name), "messages", start] as const,
  partitions: (id: string, name: string) => [...topic(id, name), "partitions"] as const,
  groups,
  groupList: (id: string) => [...groups(id), "list"] as const,
  group: (id: string, name: string) => [...groups(id), "one", name] as const,
  credentials: (id: string) => [...cluster(id), "credentials"] as const,
  aclTemplates: ["acl-templates"] as const,
  acls: (id: string) => [...cluster(id), "acls"] as const,
  aclsOf: (id: string, principal: string) => [...cluster(id), "acls", principal] as const,
  firstSteps: (id: string) => [...cluster(id), "first-steps"] as const,
  quotas: (id: string) => [...cluster(id), "quotas"] as const,
  auditLog: (filter: object) => ["audit-log", filter] as const,
  usageSeries: (filter: object) => ["usage", "series", filter] as const,
  usageRows: (filter: object) => ["usage", "rows", filter] as const,
  reconciliations: (filter: object) => ["usage", "reconciliations", filter] as const,
  usageStored: (of: object) => ["usage", "stored", of] as const,
  usageRow: (id: string) => ["usage", "row", id] as const,
  costs: (month: string) => ["costs", month] as const,
  prices: ["prices"] as const,
  budgets: ["budgets"] as const,
  alerts: ["alerts"] as const,
  billingDetails: ["billing-details"] as const,
  account: ["account"] as const,
  paymentMethod: ["payment-method"] as const,
  payments: ["payments"] as const,
  invoices: ["invoices"] as const,
  invoiceList: ["invoices", "list"] as const,
  invoice: (id: string) => ["invoices", "one", id] as const,
};

const OF_CLUSTER: Record<string, string> = {
  topics: "topics",
  groups: "consumer groups",
  credentials: "credentials",
  acls: "ACLs",
  quotas: "quotas",
};

/** Names what a query reads, by its key: `consumer groups`, `the topic`, `costs`. */
export function nounOf(key: readonly unknown[]): string {
  const [first, second, , third, fourth, , fifth] = key.map(String);
  if (first === "clusters" && second === "one") {
    if (third === undefined) return "the cluster";
    if (fifth !== undefined) return fifth;
    if (fourth === "one") return third === "groups" ? "the consumer group" : "the topic";
    if (fourth === "deleted" || fourth === "orphaned") return `${fourth} topics`;
    return OF_CLUSTER[third] ?? third;
  }
  const noun = (first ?? "").replaceAll("-", " ");
  return (
    { "acl templates": "ACL templates", "api keys": "API keys", "local mail": "mails" }[noun] ??
    noun
  );
}
