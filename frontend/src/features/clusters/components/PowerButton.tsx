import { notifications } from "@mantine/notifications";
import { IconMoon, IconPower } from "@tabler/icons-react";
import type { ReactElement } from "react";
import { GuardedButton } from "@/components/GuardedButton";
import { explain } from "@/lib/api/problem";
import type { Cluster } from "@/lib/api/types";
import { usePower } from "../api/clusters";

interface Props {
  cluster: Cluster;
  refused: string | undefined;
}

/** The button that wakes a sleeping cluster, or puts a running one to sleep. */
export function PowerButton({ cluster, refused }: Props): ReactElement | null {
  const power = usePower(cluster.id);
  const { phase } = cluster.status;
  if (phase !== "asleep" && phase !== "running") return null;
  const action = phase === "asleep" ? "wake" : "sleep";
  return (
    <GuardedButton
      refused={refused}
      variant="default"
      leftSection={action === "wake" ? <IconPower size={14} /> : <IconMoon size={14} />}
      loading={power.isPending}
      onClick={() => {
        power.mutate(action, {
          onError: (error) => {
            const { happened, next } = explain(error);
            const title = action === "wake" ? "It was not woken" : "It stays awake";
            notifications.show({ color: "red", title, message: `${happened} ${next}` });
          },
        });
      }}
    >
      {action === "wake" ? "Wake now" : "Put to sleep"}
    </GuardedButton>
  );
}
