import { Button, Group, Stack, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { CopyText } from "./CopyText";
import { Note } from "./Note";

interface Props {
  /** Labels with their values. Every value can be copied. */
  values: [string, string][];
  onDone: () => void;
  children?: ReactElement;
}

/** Shows a secret, which cannot be shown again later. */
export function SecretOnce({ values, onDone, children }: Props): ReactElement {
  return (
    <Stack gap="md">
      <Note tone="waking">
        <strong>Copy it now.</strong> The secret is shown this once. Freshet keeps only a verifier
        of it and cannot show it again.
      </Note>
      {values.map(([label, value]) => (
        <div key={label}>
          <Text size="xs" c="dimmed">
            {label}
          </Text>
          <CopyText value={value} what={label.toLowerCase()} />
        </div>
      ))}
      {children}
      <Group justify="flex-end">
        <Button onClick={onDone}>I have copied it</Button>
      </Group>
    </Stack>
  );
}
