import { Skeleton, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { Facts } from "@/components/Facts";
import { Moment } from "@/components/Moment";
import { Note } from "@/components/Note";
import { EditAlertForm, NewAlertForm } from "@/features/alerts/components/AlertForm";
import { AlertMark } from "@/features/alerts/components/AlertMark";
import { conditionWords, formatFigure } from "@/features/alerts/figures";
import { clusterListQuery } from "@/features/clusters/api/clusters";
import { groupListQuery } from "@/features/groups/api/groups";
import { memberListQuery } from "@/features/members/api/members";
import type { Alert, Cluster } from "@/lib/api/types";
import { useProjectsFor, useRefusal } from "@/lib/permissions";

/** Gives why the person may not change alerts of a cluster; undefined where they may. */
export function useAlertRefusal(): (clusterId: string) => string | undefined {
  const refused = useRefusal("write");
  const projects = useProjectsFor("write");
  const { data: clusters } = useQuery(clusterListQuery);
  return (clusterId) => {
    const project = clusters?.find(({ id }) => id === clusterId)?.project_id;
    return projects?.some(({ id }) => id === project) ? undefined : refused;
  };
}

interface NewAlertProps {
  /** The consumer group to watch, with its cluster. Without it a cluster is chosen in the form. */
  of?: { clusterId: string; group: string };
  onDone: () => void;
}

/** The form of a new alert, with the clusters, groups and members to choose from. */
export function NewAlert({ of, onDone }: NewAlertProps): ReactElement {
  const refusal = useAlertRefusal();
  const { data } = useQuery(clusterListQuery);
  const clusters = data?.filter(
    ({ id, deleted_at }) => deleted_at === null && refusal(id) === undefined,
  );
  const [picked, setPicked] = useState(of?.clusterId);
  const clusterId = picked ?? clusters?.[0]?.id;
  const choices = useChoices(clusterId);
  if (clusters === undefined) return <Skeleton height={420} />;
  if (clusterId === undefined) {
    return <Note tone="quiet">There is no cluster yet whose figures could be watched.</Note>;
  }
  return (
    <NewAlertForm
      clusters={clusters.map(({ id, name }: Cluster) => ({ value: id, label: name }))}
      clusterId={clusterId}
      group={of?.group}
      onCluster={setPicked}
      {...choices}
      onDone={onDone}
    />
  );
}

interface AlertDetailsProps {
  alert: Alert;
  refused: string | undefined;
  onDone: () => void;
}

/** The details of an alert: its state, since when, and the form that changes it. */
export function AlertDetails({ alert, refused, onDone }: AlertDetailsProps): ReactElement {
  const choices = useChoices(alert.cluster_id);
  return (
    <Stack gap="lg">
      <Facts items={factsOf(alert)} />
      {refused ? (
        <Note tone="quiet">{refused}</Note>
      ) : (
        <EditAlertForm key={alert.generation} alert={alert} {...choices} onDone={onDone} />
      )}
    </Stack>
  );
}

function factsOf(alert: Alert): [string, ReactElement | string][] {
  const { kind, value, subject, fired_subject, fired_at } = alert;
  const figure = value === null ? "not known" : formatFigure(kind, value);
  return [
    ["State", <AlertMark key="state" alert={alert} />],
    ["Since", <Moment key="since" at={alert.since} />],
    ...backSince(alert),
    ["Fires when", conditionWords(alert)],
    ["Now", subject && value !== null ? `${figure}, of ${subject}` : figure],
    ["Last look", alert.evaluated_at ? <Moment key="look" at={alert.evaluated_at} /> : "none yet"],
    ["Last fired", fired_at ? <Moment key="fired" at={fired_at} /> : "never"],
    ...(fired_subject ? ([["Fired for", fired_subject]] as [string, string][]) : []),
    [
      "History",
      <Link key="log" to="/audit" search={{ type: "alert", target: alert.id }}>
        In the audit log
      </Link>,
    ],
  ];
}

/** Since when the figure of a firing alert is back below its threshold, if it is. */
function backSince({ back_since }: Alert): [string, ReactElement][] {
  return back_since ? [["Below since", <Moment key="back" at={back_since} />]] : [];
}

/** Reads the names of a cluster's groups, and the addresses of members. */
function useChoices(clusterId: string | undefined): { groups: string[]; members: string[] } {
  const groups = useQuery({
    ...groupListQuery(clusterId ?? ""),
    enabled: clusterId !== undefined,
    refetchInterval: false,
  });
  const members = useQuery(memberListQuery);
  return {
    groups: (groups.data ?? []).map(({ group }) => group),
    members: (members.data ?? []).map(({ email }) => email),
  };
}
