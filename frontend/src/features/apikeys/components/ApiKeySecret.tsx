import type { ReactElement } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { SecretOnce } from "@/components/SecretOnce";

/** Shows a new key's secret, with a first call to try it. */
export function ApiKeySecret({
  secret,
  onDone,
}: {
  secret: string;
  onDone: () => void;
}): ReactElement {
  const command = `curl -H 'Authorization: Bearer ${secret}' ${location.origin}/api/v1/clusters`;
  return (
    <SecretOnce values={[["Secret", secret]]} onDone={onDone}>
      <CodeBlock title="Try it" code={command} />
    </SecretOnce>
  );
}
