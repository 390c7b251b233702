import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton } from "@/components/GuardedButton";
import { Note, NoteMore } from "@/components/Note";
import type { AclDraft } from "@/lib/api/types";
import { legible } from "@/lib/format/legible";
import { useSnippetCredential } from "../useSnippetCredential";

interface Props {
  clusterId: string;
  /** The topic of the snippets; undefined where the cluster has none. */
  topic: string | undefined;
  /** Why the person may not make a credential; undefined where they may. */
  refused: string | undefined;
}

/** Says which credential the snippets hold, or why they hold none and how to get one. */
export function CredentialNote({ clusterId, topic, refused }: Props): ReactElement {
  const credential = useSnippetCredential(clusterId, topic, refused);
  const { fresh, missing, error } = credential;
  return (
    <>
      {error && <ErrorPanel error={error} what="The credential was not created" />}
      {fresh ? (
        <Note
          tone={missing?.length ? "waking" : "running"}
          action={
            missing?.length ? (
              <GuardedButton
                refused={refused}
                onClick={credential.addRights}
                loading={credential.addingRights}
              >
                Give it these rights
              </GuardedButton>
            ) : undefined
          }
        >
          The credential <code>{fresh.username}</code> is filled in. Its password is known to this
          page only until it is reloaded.
          {missing && <NoteMore>{rightsInWords(missing)}</NoteMore>}
        </Note>
      ) : (
        <NoCredential
          clusterId={clusterId}
          topic={topic}
          refused={refused}
          creating={credential.creating}
          onCreate={credential.create}
        />
      )}
    </>
  );
}

interface NoCredentialProps extends Props {
  creating: boolean;
  onCreate: () => void;
}

function NoCredential(props: NoCredentialProps): ReactElement {
  const { clusterId, topic, refused, creating, onCreate } = props;
  if (topic === undefined) {
    return (
      <Note
        tone="waking"
        action={
          <Button
            renderRoot={(rest) => (
              <Link
                to="/clusters/$clusterId/topics"
                params={{ clusterId }}
                search={{ panel: "new" }}
                {...rest}
              />
            )}
          >
            New topic
          </Button>
        }
      >
        The cluster has no topic yet, which the snippets write to and read.
      </Note>
    );
  }
  return (
    <Note
      tone="waking"
      action={
        <GuardedButton refused={refused} onClick={onCreate} loading={creating}>
          Create a credential and fill it in
        </GuardedButton>
      }
    >
      The snippets need a credential. Passwords are not kept, so one that was made earlier cannot be
      filled in.
    </Note>
  );
}

function rightsInWords(missing: readonly AclDraft[]): string {
  if (missing.length === 0) return "It may do what the snippets do.";
  const rights = missing.map(
    ({ operation, resource_type, resource_name }) =>
      `${operation} on ${resource_type.toLowerCase()} ${legible(resource_name)}`,
  );
  return `The snippets need more than it may do: ${rights.join(", ")}.`;
}
