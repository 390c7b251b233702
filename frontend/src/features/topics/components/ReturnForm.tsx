import { Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { MutationForm } from "@/components/MutationForm";
import type { Topic } from "@/lib/api/types";
import type { Return } from "../api/deletedTopics";
import { topicNameComplaint } from "../configs";

interface Props {
  id: string;
  /** The name that the topic had; null where it is not known. */
  name: string | null;
  mutation: UseMutationResult<Topic, Error, Return>;
  /** The text of the button, such as "Restore the topic". */
  action: string;
  /** The words after the name in the notice of success, such as "is restored". */
  done: string;
  failure: string;
  onDone: () => void;
  /** What is brought back. */
  children: ReactNode;
}

/** The form that brings a topic back, under its own name or another one. */
export function ReturnForm(props: Props): ReactElement {
  const { id, name, mutation, action, done, failure, onDone, children } = props;
  const form = useForm({
    initialValues: { name: name ?? "" },
    validate: { name: topicNameComplaint },
  });
  return (
    <MutationForm
      form={form}
      mutation={mutation}
      input={(values) => ({ id, name: values.name === name ? "" : values.name })}
      onDone={(topic) => {
        notifications.show({ message: `${topic.name} ${done}` });
        onDone();
      }}
      onCancel={onDone}
      action={action}
      failure={failure}
    >
      <Text size="sm">{children}</Text>
      <TextInput
        label="Name"
        description={
          name === null
            ? "Storage does not hold the name that it had"
            : "Another one, if this was taken meanwhile"
        }
        autoComplete="off"
        spellCheck={false}
        data-autofocus
        {...form.getInputProps("name")}
      />
    </MutationForm>
  );
}
