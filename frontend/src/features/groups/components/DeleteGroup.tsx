import type { ReactElement } from "react";
import { DeleteButton } from "@/components/DeleteButton";
import type { Group } from "@/lib/api/types";
import { useDeleteGroup, useForgetGroup } from "../api/groups";

interface Props {
  clusterId: string;
  group: Group;
  onDeleted: () => Promise<void>;
  refused: string | undefined;
}

/** The button that deletes a group. Kafka refuses to delete one that has members. */
export function DeleteGroup({ clusterId, group, onDeleted, refused }: Props): ReactElement {
  const connected = group.members.length;
  const busy =
    connected > 0
      ? `Kafka deletes no group that has consumers connected: ${String(connected)} are.`
      : undefined;
  return (
    <DeleteButton
      name={group.group}
      title="Delete the group"
      mutation={useDeleteGroup(clusterId, group.group)}
      onDeleted={onDeleted}
      forget={useForgetGroup(clusterId, group.group)}
      refused={refused ?? busy}
    >
      Its offsets go with it: a consumer that joins <code>{group.group}</code> again begins where
      its <code>auto.offset.reset</code> says. Records stay. This cannot be undone.
    </DeleteButton>
  );
}
