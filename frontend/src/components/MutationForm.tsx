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
  /** Makes the input of the mutation from the values of the form. */
  input: (values: Values) => Input;
  onDone?: (result: Result, values: Values) => void;
  onCancel?: () => void;
  /** The text of the button, such as "Create topic". */
  action: string;
  /** What failed, such as "The topic was not created". */
  failure: string;
  /** Why the person may not send it; undefined where they may. */
  refused?: string;
  /** Whether there is nothing to send yet. */
  disabled?: boolean;
  children: ReactNode;
}

/**
 * A form that sends one change. Errors of the service are shown at their fields and below the form.
 */
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
