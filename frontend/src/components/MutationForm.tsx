import { Button, Group, Stack } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { formErrors } from "@/lib/api/problem";
import { ErrorPanel } from "./ErrorPanel";
import { GuardedButton } from "./GuardedButton";

interface Props<Values, Input, Result> {
  form: UseFormReturnType<Values>;
  mutation: UseMutationResult<Result, Error, Input>;
  /** What is sent for what was typed. */
  input: (values: Values) => Input;
  onDone?: (result: Result, values: Values) => void;
  onCancel?: () => void;
  /** The button's words: "Create topic". */
  action: string;
  /** What could not be done: "The topic was not created". */
  failure: string;
  /** Why the person may not; undefined where they may. */
  refused?: string;
  /** Nothing to send yet. */
  disabled?: boolean;
  children: ReactNode;
}

/** A form that sends one change. What the service refuses stands at its field and below all. */
export function MutationForm<Values, Input, Result>(
  props: Props<Values, Input, Result>,
): ReactElement {
  const { form, mutation, input, onDone, onCancel, action, failure, refused, disabled } = props;
  const submit = form.onSubmit((values) => {
    mutation.mutate(input(values), {
      onSuccess: (result) => onDone?.(result, values),
      onError: (error) => {
        form.setErrors(formErrors(error));
      },
    });
  });
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="md">
        {props.children}
        {mutation.error && <ErrorPanel error={mutation.error} what={failure} />}
        <Group justify={onCancel ? "flex-end" : "flex-start"} gap="xs">
          {onCancel && (
            <Button variant="default" onClick={onCancel}>
              Cancel
            </Button>
          )}
          <GuardedButton
            type="submit"
            refused={refused}
            loading={mutation.isPending}
            disabled={disabled}
          >
            {action}
          </GuardedButton>
        </Group>
      </Stack>
    </form>
  );
}
