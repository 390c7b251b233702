import { Spotlight, type SpotlightActionData } from "@mantine/spotlight";
import { IconDatabase, IconList, IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type ReactElement, useMemo } from "react";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { topicListQuery } from "@/features/topics/api/topics";

const PAGES = [
  { to: "/", label: "Overview" },
  { to: "/clusters", label: "Clusters" },
  { to: "/alerts", label: "Alerts" },
  { to: "/usage", label: "Usage" },
  { to: "/usage/costs", label: "Cost of this month" },
  { to: "/usage/budgets", label: "Budgets" },
  { to: "/prices", label: "Prices" },
  { to: "/invoices", label: "Invoices" },
  { to: "/billing", label: "Payment: card, what is owed, what was paid" },
  { to: "/billing-details", label: "Billing details" },
  { to: "/access", label: "Access: members and invitations" },
  { to: "/access/projects", label: "Access: projects" },
  { to: "/access/service-accounts", label: "Access: service accounts" },
  { to: "/access/keys", label: "Access: API keys" },
  { to: "/audit", label: "Audit log" },
  { to: "/incidents", label: "Incidents" },
  { to: "/settings", label: "Settings" },
  { to: "/settings/organization", label: "Organization: safety, export, closing" },
  { to: "/settings/limits", label: "Limits" },
  { to: "/settings/sign-in", label: "Sign-in: two-factor, sessions, password" },
] as const;

const CLUSTER_PAGES = [
  { to: "/clusters/$clusterId/connect", label: "Connect a client" },
  { to: "/clusters/$clusterId/topics", label: "Topics" },
  { to: "/clusters/$clusterId/groups", label: "Consumer groups" },
  { to: "/clusters/$clusterId/credentials", label: "Credentials" },
  { to: "/clusters/$clusterId/acls", label: "ACLs" },
  { to: "/clusters/$clusterId/quotas", label: "Quotas" },
  { to: "/clusters/$clusterId/settings", label: "Settings of the cluster" },
] as const;

/** The palette of Ctrl-K: it finds every page, every cluster, and the topics of this cluster. */
export function Palette(): ReactElement {
  const navigate = useNavigate();
  const { clusterId } = useParams({ strict: false });
  const { data: clusters } = useQuery(clusterListQuery);
  const topics = useQuery({ ...topicListQuery(clusterId ?? ""), enabled: clusterId !== undefined });
  const actions = useMemo(() => {
    const actions: SpotlightActionData[] = PAGES.map(({ to, label }) => ({
      id: to,
      label,
      onClick: () => void navigate({ to }),
    }));
    if (clusterId) {
      for (const { to, label } of CLUSTER_PAGES) {
        const go = () => void navigate({ to, params: { clusterId } });
        actions.push({ id: to, label, description: "In this cluster", onClick: go });
      }
    }
    for (const { id, name } of clusters ?? []) {
      const go = () => void navigate({ to: "/clusters/$clusterId", params: { clusterId: id } });
      const leftSection = <IconDatabase size={16} />;
      actions.push({ id, label: name, description: "Cluster", leftSection, onClick: go });
    }
    for (const { name } of topics.data ?? []) {
      if (!clusterId) break;
      const params = { clusterId, topic: name };
      const go = () => void navigate({ to: "/clusters/$clusterId/topics/$topic", params });
      const leftSection = <IconList size={16} />;
      actions.push({
        id: `topic ${name}`,
        label: name,
        description: "Topic",
        leftSection,
        onClick: go,
      });
    }
    return actions;
  }, [navigate, clusterId, clusters, topics.data]);
  return (
    <Spotlight
      actions={actions}
      shortcut="mod + K"
      limit={12}
      nothingFound="Nothing has this name"
      searchProps={{
        leftSection: <IconSearch size={16} />,
        placeholder: "Jump to a page, a cluster, a topic",
        "aria-label": "Jump to",
      }}
    />
  );
}
