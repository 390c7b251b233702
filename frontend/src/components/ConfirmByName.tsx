import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { type ReactElement, type ReactNode, useState } from "react";
import { ErrorPanel } from "./ErrorPanel";

interface Props {
  opened: boolean;
  onClose: () => void;
  onConfirm: () => void;
  /** The name that the person must type. */
  name: string;
  title: string;
  /** What is deleted, what stays, and whether and how it can be undone. */
  children: ReactNode;
  /** The text of the button, such as "Delete the topic". */
  action: string;
  /** What failed, for the error panel. */
  failure?: string;
  pending: boolean;
  error: unknown;
}

/** A dialog that asks for the name of what is deleted, so that nothing is deleted by mistake. */
export function ConfirmByName(props: Props): ReactElement {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={props.title}>
      {/* The body is made anew each time it opens, so that the former input is gone. */}
      <Body {...props} />
    </Modal>
  );
}

function Body(props: Props): ReactElement {
  const { onClose, onConfirm, name, children, action, pending, error } = props;
  const { failure = "It was not deleted" } = props;
  const [typed, setTyped] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (typed === name) onConfirm();
      }}
    >
      <Stack gap="sm">
        <Text size="sm">{children}</Text>
        <TextInput
          label={
            <>
              Type <code>{name}</code> to confirm
            </>
          }
          value={typed}
          onChange={(event) => {
            setTyped(event.currentTarget.value);
          }}
          data-autofocus
          autoComplete="off"
          spellCheck={false}
        />
        {error ? <ErrorPanel error={error} what={failure} /> : null}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Keep it
          </Button>
          <Button type="submit" color="red" disabled={typed !== name} loading={pending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
