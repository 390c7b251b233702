import { useQuery } from "@tanstack/react-query";
import { Link, useLocation, useNavigate, useParams } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { groupListQuery } from "@/features/groups/api/groups";
import { invoiceListQuery } from "@/features/invoices/api/invoices";
import { topicListQuery } from "@/features/topics/api/topics";
import { monthName } from "@/lib/format/utc";
import classes from "./Crumbs.module.css";
import { Switcher } from "./Switcher";

const TITLES: Record<string, string> = {
  "": "Overview",
  clusters: "Clusters",
  alerts: "Alerts",
  usage: "Usage",
  prices: "Prices",
  invoices: "Invoices",
  billing: "Payment",
  "billing-details": "Billing details",
  access: "Access",
  audit: "Audit log",
  incidents: "Incidents",
  staff: "Staff",
  mail: "Local mail",
  settings: "Settings",
};

/** Where the person is. The name of a cluster, topic or group also opens a list to switch. */
export function Crumbs(): ReactElement {
  const { pathname } = useLocation();
  const params = useParams({ strict: false });
  const top = pathname.split("/")[1] ?? "";
  if (params.invoiceId !== undefined) return <InvoiceCrumbs invoiceId={params.invoiceId} />;
  if (!params.clusterId) {
    return (
      <nav aria-label="Breadcrumbs" className={classes.root}>
        <span className={classes.here}>{TITLES[top] ?? "Not found"}</span>
      </nav>
    );
  }
  return (
    <nav aria-label="Breadcrumbs" className={classes.root}>
      <Link to="/clusters" className={classes.up}>
        Clusters
      </Link>
      <span aria-hidden="true">/</span>
      <ClusterCrumb clusterId={params.clusterId} />
      {params.topic !== undefined && (
        <TopicCrumb clusterId={params.clusterId} topic={params.topic} />
      )}
      {params.group !== undefined && (
        <GroupCrumb clusterId={params.clusterId} group={params.group} />
      )}
    </nav>
  );
}

function InvoiceCrumbs({ invoiceId }: { invoiceId: string }): ReactElement {
  const navigate = useNavigate();
  const { data } = useQuery(invoiceListQuery);
  const options = data?.map(({ id, number, month }) => ({
    value: id,
    label: number ?? `Draft of ${monthName(month)}`,
  }));
  return (
    <nav aria-label="Breadcrumbs" className={classes.root}>
      <Link to="/invoices" className={classes.up}>
        Invoices
      </Link>
      <span aria-hidden="true">/</span>
      <Switcher
        what="invoice"
        value={invoiceId}
        options={options ?? []}
        onPick={(id) => void navigate({ to: "/invoices/$invoiceId", params: { invoiceId: id } })}
      />
    </nav>
  );
}

function ClusterCrumb({ clusterId }: { clusterId: string }): ReactElement {
  const navigate = useNavigate();
  const { data } = useQuery(clusterListQuery);
  const options = data?.map((cluster) => ({ value: cluster.id, label: cluster.name })) ?? [];
  return (
    <Switcher
      what="cluster"
      value={clusterId}
      options={options}
      onPick={(id) => void navigate({ to: "/clusters/$clusterId", params: { clusterId: id } })}
    />
  );
}

function TopicCrumb({ clusterId, topic }: { clusterId: string; topic: string }): ReactElement {
  const navigate = useNavigate();
  const { data } = useQuery(topicListQuery(clusterId));
  const options = data?.map(({ name }) => ({ value: name, label: name })) ?? [];
  return (
    <>
      <span aria-hidden="true">/</span>
      <Link to="/clusters/$clusterId/topics" params={{ clusterId }} className={classes.up}>
        Topics
      </Link>
      <span aria-hidden="true">/</span>
      <Switcher
        what="topic"
        value={topic}
        options={options}
        onPick={(name) =>
          void navigate({
            to: "/clusters/$clusterId/topics/$topic",
            params: { clusterId, topic: name },
          })
        }
      />
    </>
  );
}

function GroupCrumb({ clusterId, group }: { clusterId: string; group: string }): ReactElement {
  const navigate = useNavigate();
  const { data } = useQuery(groupListQuery(clusterId));
  const options = data?.map(({ group: name }) => ({ value: name, label: name })) ?? [];
  return (
    <>
      <span aria-hidden="true">/</span>
      <Link to="/clusters/$clusterId/groups" params={{ clusterId }} className={classes.up}>
        Groups
      </Link>
      <span aria-hidden="true">/</span>
      <Switcher
        what="group"
        value={group}
        options={options}
        onPick={(name) =>
          void navigate({
            to: "/clusters/$clusterId/groups/$group",
            params: { clusterId, group: name },
          })
        }
      />
    </>
  );
}
