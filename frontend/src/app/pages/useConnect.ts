import { useQuery } from "@tanstack/react-query";
import { topicListQuery } from "@/features/topics/api/topics";
import type { Cluster } from "@/lib/api/types";
import { useProjectRefusal } from "@/lib/permissions";

interface Connect {
  topics: string[] | undefined;
  refused: string | undefined;
}

/**
 * What the snippets of a cluster need of elsewhere: its topics, undefined until they are read, and
 * why the person may not make a credential.
 */
export function useConnect({ id, project_id }: Cluster): Connect {
  const topics = useQuery(topicListQuery(id)).data;
  const refused = useProjectRefusal("write", project_id);
  return {
    topics: topics?.filter(({ internal }) => !internal).map(({ name }) => name),
    refused,
  };
}
