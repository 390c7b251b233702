import type { ReactElement } from "react";
import { RotateForm } from "@/components/RotateForm";
import type { ApiKey } from "@/lib/api/types";
import { useRotateApiKey } from "../api/apiKeys";
import { ApiKeySecret } from "./ApiKeySecret";

interface Props {
  apiKey: ApiKey;
  onDone: () => void;
}

/** The form that replaces an API key by a new one. It shows the new secret once. */
export function RotateApiKey({ apiKey, onDone }: Props): ReactElement {
  const rotate = useRotateApiKey();
  if (rotate.data) return <ApiKeySecret secret={rotate.data.secret} onDone={onDone} />;
  return (
    <RotateForm id={apiKey.id} mutation={rotate} onCancel={onDone}>
      A new key has the rights of {apiKey.name}. Put it where the old one is; that one ends by
      itself after the time you choose.
    </RotateForm>
  );
}
