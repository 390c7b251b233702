import { Button, Group, Stack } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { type ReactElement, useMemo } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { Note, NoteMore } from "@/components/Note";

interface Props {
  codes: readonly string[];
  onDone: () => void;
}

/** Shows the recovery codes, which cannot be shown again later. */
export function RecoveryCodes({ codes, onDone }: Props): ReactElement {
  const text = codes.join("\n");
  const file = useMemo(() => `data:text/plain,${encodeURIComponent(`${text}\n`)}`, [text]);
  return (
    <Stack gap="md">
      <Note tone="waking">
        <strong>Keep these now.</strong> Each code signs you in once when the app is not at hand.
        <NoteMore>They are shown this once. Print them, or put them into a password safe.</NoteMore>
      </Note>
      <CodeBlock title="Recovery codes" code={text} />
      <Group justify="space-between">
        <Button
          component="a"
          href={file}
          download="freshet-recovery-codes.txt"
          variant="default"
          leftSection={<IconDownload size={14} />}
        >
          Download
        </Button>
        <Button onClick={onDone}>I have kept them</Button>
      </Group>
    </Stack>
  );
}
