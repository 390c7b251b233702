import type { ReactElement } from "react";
import { RotateForm } from "@/components/RotateForm";
import { SecretOnce } from "@/components/SecretOnce";
import type { Credential } from "@/lib/api/types";
import { useRotateCredential } from "../api/credentials";
import { secretsOf } from "../roles";

interface Props {
  clusterId: string;
  credential: Credential;
  onDone: () => void;
}

/** The form that replaces a credential by a new one. It shows the new password once. */
export function RotateCredential({ clusterId, credential, onDone }: Props): ReactElement {
  const rotate = useRotateCredential(clusterId);
  if (rotate.data) return <SecretOnce values={secretsOf(rotate.data)} onDone={onDone} />;
  return (
    <RotateForm id={credential.id} mutation={rotate} onCancel={onDone}>
      A new credential has the rules of {credential.name}. Give it to the clients; the old one ends
      by itself after the time you choose, and what is still connected with it then is disconnected.
    </RotateForm>
  );
}
