import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useState } from "react";
import { ConfirmByName } from "@/components/ConfirmByName";
import { useDeleteTopic } from "../api/topics";

interface Props {
  clusterId: string;
  topic: string;
  onDeleted: () => void;
}

/** The button that deletes a topic, with its dialog. */
export function DeleteTopic({ clusterId, topic, onDeleted }: Props): ReactElement {
  const [asking, setAsking] = useState(false);
  const remove = useDeleteTopic(clusterId, topic);
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          setAsking(true);
        }}
      >
        Delete
      </Button>
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
