import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { type ReactElement, type ReactNode, useState } from "react";
import { ErrorPanel } from "./ErrorPanel";

interface Props {
  opened: boolean;
  onClose: () => void;
  onConfirm: () => void;
  /** The name that has to be typed. */
  name: string;
  title: string;
  /** What will be gone, what stays, and whether and how it can be undone. */
  children: ReactNode;
  /** The button's words: "Delete the topic". */
  action: string;
  /** What could not be done. */
  failure?: string;
  pending: boolean;
  error: unknown;
}

/** Asks for the name of what is destroyed, so that nothing goes by a slip of the hand. */
export function ConfirmByName(props: Props): ReactElement {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={props.title}>
      {/* A new body each time it opens: what was typed does not stay. */}
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
