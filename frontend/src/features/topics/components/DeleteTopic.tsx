import type { ReactElement } from "react";
import { DeleteButton } from "@/components/DeleteButton";
import { useDeleteTopic, useForgetTopic } from "../api/topics";

interface Props {
  clusterId: string;
  topic: string;
  onDeleted: () => Promise<void>;
  refused: string | undefined;
}

/** The button that deletes a topic, with its dialog. */
export function DeleteTopic({ clusterId, topic, onDeleted, refused }: Props): ReactElement {
  return (
    <DeleteButton
      name={topic}
      title="Delete the topic"
      mutation={useDeleteTopic(clusterId, topic)}
      onDeleted={onDeleted}
      forget={useForgetTopic(clusterId, topic)}
      refused={refused}
    >
      Clients that use <code>{topic}</code> get an error from now on. It can be restored with its
      records, below the list of topics, until the moment that is shown there; then they go for
      good.
    </DeleteButton>
  );
}
