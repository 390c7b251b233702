import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ConfirmByName } from "@/components/ConfirmByName";
import { GuardedButton } from "@/components/GuardedButton";
import { useDeleteTopic } from "../api/topics";

interface Props {
  clusterId: string;
  topic: string;
  onDeleted: () => void;
  refused: string | undefined;
}

/** The button that deletes a topic, with its dialog. */
export function DeleteTopic({ clusterId, topic, onDeleted, refused }: Props): ReactElement {
  const [asking, setAsking] = useState(false);
  const remove = useDeleteTopic(clusterId, topic);
  return (
    <>
      <GuardedButton
        refused={refused}
        variant="default"
        onClick={() => {
          setAsking(true);
        }}
      >
        Delete
      </GuardedButton>
      <ConfirmByName
        opened={asking}
        onClose={() => {
          setAsking(false);
          remove.reset();
        }}
        name={topic}
        title="Delete the topic"
        action="Delete the topic"
        pending={remove.isPending}
        error={remove.error}
        onConfirm={() => {
          remove.mutate(undefined, {
            onSuccess: () => {
              notifications.show({ message: `${topic} is deleted` });
              onDeleted();
            },
          });
        }}
      >
        All records of <code>{topic}</code> go with it, and clients that use it get an error. This
        cannot be undone.
      </ConfirmByName>
    </>
  );
}
