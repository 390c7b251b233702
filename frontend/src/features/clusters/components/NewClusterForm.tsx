import { Select, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { MutationForm } from "@/components/MutationForm";
import { useProjectsFor } from "@/lib/permissions";
import { regionsQuery, useCreateCluster } from "../api/clusters";
import { BrokersInput, brokersProblem } from "./BrokersInput";

interface Props {
  onDone: (clusterId: string) => void;
  onCancel: () => void;
}

/** The form of a new cluster, which needs only a name and a region. */
export function NewClusterForm({ onDone, onCancel }: Props): ReactElement {
  const regions = useQuery(regionsQuery);
  const create = useCreateCluster();
  const projects = useProjectsFor("write");
  const form = useForm({
    initialValues: { name: "", region: "", project: "", brokers: 1 },
    validate: {
      name: (name) => (name.trim() ? null : "Name the cluster"),
      brokers: brokersProblem,
    },
  });
  const only = regions.data?.[0]?.id ?? "";
  const first = (projects?.find((project) => project.default) ?? projects?.[0])?.id;
  return (
    <MutationForm
      form={form}
      mutation={create}
      input={(values) => ({
        name: values.name.trim(),
        region: values.region || only,
        project_id: values.project || first,
        spec: { scale: { max: values.brokers } },
      })}
      onDone={(operation) => {
        onDone(operation.resource_id);
      }}
      onCancel={onCancel}
      action="Create cluster"
      failure="The cluster was not created"
      disabled={!regions.data}
    >
      <TextInput
        label="Name"
        description="Letters, digits and dashes"
        data-autofocus
        autoComplete="off"
        spellCheck={false}
        {...form.getInputProps("name")}
      />
      <Select
        label="Region"
        data={regions.data?.map(({ id, name }) => ({ value: id, label: name })) ?? []}
        allowDeselect={false}
        {...form.getInputProps("region")}
        value={form.values.region || only}
      />
      <BrokersInput {...form.getInputProps("brokers")} />
      {(projects?.length ?? 0) > 1 && (
        <Select
          label="Project"
          description="People with a role in it may work with the cluster"
          data={projects?.map(({ id, name }) => ({ value: id, label: name }))}
          allowDeselect={false}
          searchable
          {...form.getInputProps("project")}
          value={form.values.project || first}
        />
      )}
      {regions.error && <ErrorPanel error={regions.error} what="The regions could not be read" />}
    </MutationForm>
  );
}
