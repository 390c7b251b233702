import { Select, Switch, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { ReactElement } from "react";
import { MutationForm } from "@/components/MutationForm";
import { Section } from "@/components/Section";
import type { Cluster, ClusterChange, Schedule } from "@/lib/api/types";
import { formatDuration } from "@/lib/format/time";
import { useUpdateCluster } from "../api/clusters";
import { scheduleProblem } from "../schedules";
import { BrokersInput, brokersProblem } from "./BrokersInput";
import { DeleteCluster, RestoreCluster } from "./DeleteCluster";
import { ProjectSelect } from "./ProjectSelect";
import { ScheduleFields } from "./ScheduleFields";
import { SuspendCluster } from "./SuspendCluster";

const TIMEOUTS_S = [30, 60, 300, 900, 3_600, 14_400, 86_400];

/** Returns only the values that differ from the present ones. */
export function changeOf(
  cluster: Pick<Cluster, "name" | "spec" | "project_id">,
  values: {
    name: string;
    project: string;
    idle: string;
    brokers: number;
    awake: boolean;
    schedules: Schedule[];
  },
): ClusterChange {
  const change: ClusterChange = {};
  if (values.name.trim() !== cluster.name) change.name = values.name.trim();
  if (values.project !== cluster.project_id) change.project_id = values.project;
  const idle = Number(values.idle);
  if (idle !== cluster.spec.idle_timeout_s) change.idle_timeout_s = idle;
  const [min, max] = [values.awake ? 1 : 0, values.brokers];
  const scale = {
    ...(min === cluster.spec.scale.min ? {} : { min }),
    ...(max === cluster.spec.scale.max ? {} : { max }),
  };
  if (Object.keys(scale).length > 0) change.spec = { scale };
  if (JSON.stringify(values.schedules) !== JSON.stringify(cluster.spec.schedules)) {
    change.spec = { ...change.spec, schedules: values.schedules };
  }
  return change;
}

interface Props {
  cluster: Cluster;
  onDeleted: () => void;
  refused: string | undefined;
}

/** The settings of a cluster, with its suspension and deletion. */
export function ClusterSettings({ cluster, onDeleted, refused }: Props): ReactElement {
  const gone = cluster.deleted_at !== null;
  return (
    <div style={{ maxWidth: 560 }}>
      {gone ? (
        <Section title="Restore" lead="Everything is as it was. Clients are served again.">
          <RestoreCluster cluster={cluster} refused={refused} />
        </Section>
      ) : (
        <>
          <Section title="General">
            <GeneralForm cluster={cluster} refused={refused} />
          </Section>
          <Section
            title="Suspend"
            lead="A suspended cluster refuses every client and is never woken. All data is kept."
          >
            <SuspendCluster cluster={cluster} refused={refused} />
          </Section>
          <Section
            title="Delete"
            lead="Its topics, records, credentials and rules are deleted with it."
          >
            <DeleteCluster cluster={cluster} onDeleted={onDeleted} refused={refused} />
          </Section>
        </>
      )}
    </div>
  );
}

function GeneralForm({ cluster, refused }: Omit<Props, "onDeleted">): ReactElement {
  const update = useUpdateCluster(cluster);
  const { idle_timeout_s: current, scale } = cluster.spec;
  const form = useForm({
    initialValues: {
      name: cluster.name,
      project: cluster.project_id,
      idle: String(current),
      brokers: scale.max,
      awake: scale.min > 0,
      schedules: cluster.spec.schedules,
    },
    validate: {
      name: (name) => (name.trim() ? null : "Name the cluster"),
      brokers: brokersProblem,
      schedules: (schedules) => (schedules.some(scheduleProblem) ? "Complete the hours" : null),
    },
  });
  const times = [...new Set([...TIMEOUTS_S, current])].sort((a, b) => a - b);
  const change = changeOf(cluster, form.values);
  return (
    <MutationForm
      form={form}
      mutation={update}
      input={() => change}
      onDone={() => {
        notifications.show({ message: "The settings are saved" });
      }}
      action="Save"
      failure="The settings were not saved"
      refused={refused}
      disabled={Object.keys(change).length === 0}
    >
      <TextInput label="Name" autoComplete="off" {...form.getInputProps("name")} />
      <ProjectSelect {...form.getInputProps("project")} value={form.values.project} />
      <BrokersInput {...form.getInputProps("brokers")} />
      <Select
        label="Idle time"
        description="With no client connected for this long, the cluster goes to sleep"
        data={times.map((s) => ({ value: String(s), label: formatDuration(s) }))}
        allowDeselect={false}
        disabled={form.values.awake}
        {...form.getInputProps("idle")}
      />
      <Switch
        label="Never sleeps"
        description="Its brokers stay awake with no client connected: no first connection waits"
        {...form.getInputProps("awake", { type: "checkbox" })}
      />
      {!form.values.awake && (
        <ScheduleFields {...form.getInputProps("schedules")} value={form.values.schedules} />
      )}
    </MutationForm>
  );
}
