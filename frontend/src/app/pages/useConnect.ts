import { useQuery } from "@tanstack/react-query";
import { useCreateCredential } from "@/features/credentials/api/credentials";
import { topicListQuery } from "@/features/topics/api/topics";
import { useRefusal } from "@/lib/permissions";

/** Returns a name that says where the credential comes from and is new each second:
 * `console-20260301-140509`. */
function credentialName(now: Date): string {
  return `console-${now.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-")}`;
}

interface Connect {
  topics: string[];
  createCredential: () => void;
  creating: boolean;
  error: Error | null;
  refused: string | undefined;
}

/** What the snippets of a cluster need: its topics, and how to make a credential. */
export function useConnect(clusterId: string): Connect {
  const topics = useQuery(topicListQuery(clusterId)).data ?? [];
  const refused = useRefusal("write");
  const create = useCreateCredential(clusterId);
  return {
    topics: topics.map((topic) => topic.name),
    createCredential: () => {
      create.mutate({ name: credentialName(new Date()), role: "full" });
    },
    creating: create.isPending,
    error: create.error,
    refused,
  };
}
