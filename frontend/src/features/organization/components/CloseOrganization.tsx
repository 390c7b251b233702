import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconDownload } from "@tabler/icons-react";
import { type ReactElement, useState } from "react";
import { GuardedButton } from "@/components/GuardedButton";
import { MutationForm } from "@/components/MutationForm";
import { Note, NoteMore } from "@/components/Note";
import { SidePanel } from "@/components/SidePanel";
import { useCloseOrganization } from "../api/organization";

interface Props {
  name: string;
  /** Whether the person has a second factor, and so is asked for a code. */
  asksCode: boolean;
  refusedExport: string | undefined;
  refused: string | undefined;
}

/** The export of the organization's data, and the form that closes the organization. */
export function CloseOrganization(props: Props): ReactElement {
  const { name, asksCode, refusedExport, refused } = props;
  const [asking, setAsking] = useState(false);
  const close = (): void => {
    setAsking(false);
  };
  return (
    <Stack gap="sm" align="flex-start">
      <Group gap="xs">
        {refusedExport === undefined ? (
          <Button
            component="a"
            href="/api/v1/organizations/current/export"
            download
            variant="default"
            leftSection={<IconDownload size={14} />}
          >
            Export everything
          </Button>
        ) : (
          <GuardedButton refused={refusedExport} variant="default">
            Export everything
          </GuardedButton>
        )}
        <GuardedButton
          refused={refused}
          color="red"
          variant="light"
          onClick={() => {
            setAsking(true);
          }}
        >
          Close the organization
        </GuardedButton>
      </Group>
      <Text size="xs" c="dimmed">
        The export has all but secrets and records: clusters, topics, rules, usage, invoices, audit
        log.
      </Text>
      <SidePanel opened={asking} onClose={close} title="Close the organization">
        <CloseForm name={name} asksCode={asksCode} onCancel={close} />
      </SidePanel>
    </Stack>
  );
}

function CloseForm({
  name,
  asksCode,
  onCancel,
}: {
  name: string;
  asksCode: boolean;
  onCancel: () => void;
}): ReactElement {
  const close = useCloseOrganization();
  const form = useForm({ initialValues: { name: "", code: "" } });
  return (
    <MutationForm
      form={form}
      mutation={close}
      input={({ name: typed, code }) => ({ name: typed, ...(asksCode ? { code } : {}) })}
      onCancel={onCancel}
      action="Close the organization"
      failure="The organization was not closed"
      disabled={form.values.name !== name || (asksCode && form.values.code.trim() === "")}
    >
      <Note tone="failed">
        <strong>All clusters are deleted, and all API keys revoked.</strong>
        <NoteMore>
          A final invoice follows. Signing in stays possible, to read invoices. It cannot be undone.
        </NoteMore>
      </Note>
      <TextInput
        label={
          <>
            Type <code>{name}</code> to confirm
          </>
        }
        autoComplete="off"
        spellCheck={false}
        data-autofocus
        {...form.getInputProps("name")}
      />
      {asksCode && (
        <TextInput
          label="Code"
          description="Of your authenticator app, or a recovery code"
          autoComplete="one-time-code"
          {...form.getInputProps("code")}
        />
      )}
    </MutationForm>
  );
}
