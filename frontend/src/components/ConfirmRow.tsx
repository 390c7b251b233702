import { notifications } from "@mantine/notifications";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { ConfirmByName } from "./ConfirmByName";

interface Props<Row> {
  /** The row to delete; undefined while the dialog is closed. */
  row: Row | undefined;
  onClose: () => void;
  mutation: UseMutationResult<unknown, Error, Row>;
  name: (row: Row) => string;
  /** The title of the dialog, such as "Delete the credential". */
  title: string;
  /** The text of the button; by default the title. */
  action?: string;
  /** The words after the name in the notice of success, such as "is deleted". */
  done: string;
  /** What is deleted, what stays, and whether and how it can be undone. */
  children: ReactNode;
}

/** Asks for the name of a table's row, then deletes it. */
export function ConfirmRow<Row>(props: Props<Row>): ReactElement {
  const { row, onClose, mutation, name, title, action = title, done, children } = props;
  const close = (): void => {
    onClose();
    mutation.reset();
  };
  return (
    <ConfirmByName
      opened={row !== undefined}
      onClose={close}
      name={row === undefined ? "" : name(row)}
      title={title}
      action={action}
      pending={mutation.isPending}
      error={mutation.error}
      onConfirm={() => {
        if (row === undefined) return;
        const onSuccess = (): void => {
          notifications.show({ message: `${name(row)} ${done}` });
          close();
        };
        mutation.mutate(row, { onSuccess });
      }}
    >
      {children}
    </ConfirmByName>
  );
}
