import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { CopyText } from "@/components/CopyText";
import { ErrorPanel } from "@/components/ErrorPanel";
import { PageHead } from "@/components/PageHead";
import { PhaseMark } from "@/components/PhaseMark";
import { clusterQuery } from "@/features/clusters/api/clusters";
import { TrafficLimited } from "@/features/clusters/components/TrafficLimited";
import { PowerButton } from "@/features/clusters/components/PowerButton";
import classes from "./ClusterLayout.module.css";
import { TabLinks, tabProps } from "./TabLinks";
import { useClusterId, useClusterRefusal } from "./useCluster";
import { useProjectNames } from "./useProjectNames";

/** The head and the tabs of a cluster's pages. */
export function ClusterLayout(): ReactElement {
  const clusterId = useClusterId();
  const refused = useClusterRefusal();
  const projects = useProjectNames();
  const { data: cluster, error, refetch } = useQuery(clusterQuery(clusterId));
  if (error && !cluster) {
    return (
      <ErrorPanel
        error={error}
        what="The cluster could not be read"
        onRetry={() => void refetch()}
      />
    );
  }
  const params = { clusterId };
  const project = cluster && projects?.get(cluster.project_id);
  return (
    <>
      <PageHead
        title={
          cluster ? (
            <span className={classes.title}>
              {cluster.name} <PhaseMark phase={cluster.status.phase} large />
            </span>
          ) : (
            <Skeleton height={20} width={240} mt={4} />
          )
        }
        lead={
          cluster ? (
            <span className={classes.facts}>
              {project && (
                <Link to="/access/projects" search={{ panel: cluster.project_id }}>
                  {project}
                </Link>
              )}
              <span>{cluster.region}</span>
              {cluster.bootstrap_servers && (
                <CopyText value={cluster.bootstrap_servers} what="the bootstrap address" />
              )}
            </span>
          ) : (
            <Skeleton height={12} width={320} mt={8} />
          )
        }
        actions={cluster && <PowerButton cluster={cluster} refused={refused} />}
      />
      {cluster && (
        <TrafficLimited cluster={cluster} action={<Link to="/usage/budgets">Budgets</Link>} />
      )}
      <TabLinks label="Cluster">
        <Link to="/clusters/$clusterId" params={params} {...tabProps(true)}>
          Overview
        </Link>
        <Link to="/clusters/$clusterId/connect" params={params} {...tabProps()}>
          Connect
        </Link>
        <Link to="/clusters/$clusterId/topics" params={params} {...tabProps()}>
          Topics
        </Link>
        <Link to="/clusters/$clusterId/groups" params={params} {...tabProps()}>
          Consumer groups
        </Link>
        <Link to="/clusters/$clusterId/credentials" params={params} {...tabProps()}>
          Credentials
        </Link>
        <Link to="/clusters/$clusterId/acls" params={params} {...tabProps()}>
          ACLs
        </Link>
        <Link to="/clusters/$clusterId/quotas" params={params} {...tabProps()}>
          Quotas
        </Link>
        <Link to="/clusters/$clusterId/settings" params={params} {...tabProps()}>
          Settings
        </Link>
      </TabLinks>
      <Outlet />
    </>
  );
}
