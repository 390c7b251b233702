import { Select, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { OVERLAPS } from "@/lib/overlaps";
import { MutationForm } from "./MutationForm";

interface Props<Result> {
  id: string;
  mutation: UseMutationResult<Result, Error, { id: string; overlapS: number }>;
  onCancel: () => void;
  /** What the rotation does. */
  children: ReactNode;
}

/** Asks how long the old secret works beside the new one, then rotates. */
export function RotateForm<Result>(props: Props<Result>): ReactElement {
  const { id, mutation, onCancel, children } = props;
  const form = useForm({ initialValues: { overlap: "86400" } });
  return (
    <MutationForm
      form={form}
      mutation={mutation}
      input={({ overlap }) => ({ id, overlapS: Number(overlap) })}
      onCancel={onCancel}
      action="Rotate"
      failure="It was not rotated"
    >
      <Text size="sm">{children}</Text>
      <Select
        label="Both are good for"
        data={OVERLAPS}
        allowDeselect={false}
        {...form.getInputProps("overlap")}
      />
    </MutationForm>
  );
}
