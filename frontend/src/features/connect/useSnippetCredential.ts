import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { isStatus } from "@/lib/api/client";
import type { AclDraft } from "@/lib/api/types";
import { type FreshCredential, useFreshCredential } from "@/lib/freshCredentials";
import {
  firstStepsQuery,
  rightsQuery,
  useAddRights,
  useCreateSnippetCredential,
  useIsCreating,
  useIsCreatingNow,
} from "./api/connect";
import { missingRights, rightsOfSnippets } from "./rights";

/** The name of the credential that a cluster without one gets for its snippets. */
export const FIRST_NAME = "first-steps";

/**
 * Returns a name that says where the credential comes from and is new each second:
 * `console-20260301-140509`.
 */
function furtherName(now: Date): string {
  return `console-${now.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-")}`;
}

interface SnippetCredential {
  /** The credential whose password this page holds. */
  fresh: FreshCredential | undefined;
  /** What the snippets need and it may not do; undefined until that is known. */
  missing: AclDraft[] | undefined;
  creating: boolean;
  error: Error | null;
  /** Makes a further credential. */
  create: () => void;
  addingRights: boolean;
  addRights: () => void;
}

/**
 * The credential of a cluster's snippets. A cluster that has none gets one at once, which may use
 * the topic and the snippets' groups. Later visits make none: a password is shown once, and whoever
 * needs another presses a button.
 */
export function useSnippetCredential(
  clusterId: string,
  topic: string | undefined,
  refused: string | undefined,
): SnippetCredential {
  const { data: steps } = useQuery(firstStepsQuery(clusterId));
  const fresh = useFreshCredential(clusterId);
  const { mutate, isIdle, error, variables } = useCreateSnippetCredential(clusterId);
  const creating = useIsCreating(clusterId);
  const isCreatingNow = useIsCreatingNow(clusterId);
  const isFirst = steps?.credential === false && fresh === undefined && refused === undefined;
  const due = isFirst && isIdle && !creating ? topic : undefined;
  useEffect(() => {
    // Another part of the page may have begun since this was rendered.
    if (due !== undefined && !isCreatingNow()) mutate({ name: FIRST_NAME, topic: due });
    // `isCreatingNow` is another one each time.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [due, mutate]);
  const principal = `User:${fresh?.username ?? ""}`;
  const rights = useQuery({ ...rightsQuery(clusterId, principal), enabled: fresh !== undefined });
  const missing =
    rights.data && topic !== undefined
      ? missingRights(rightsOfSnippets(principal, topic), rights.data)
      : undefined;
  const add = useAddRights(clusterId);
  // Somebody else was faster, and that is what the page shows next.
  const isOvertaken = isStatus(error, 409) && variables?.name === FIRST_NAME;
  return {
    fresh,
    missing,
    creating,
    error: isOvertaken ? add.error : (error ?? add.error),
    create: () => {
      if (topic !== undefined) mutate({ name: furtherName(new Date()), topic });
    },
    addingRights: add.isPending,
    addRights: () => {
      if (missing) add.mutate(missing);
    },
  };
}
