import { notifications } from "@mantine/notifications";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { ConfirmByName } from "./ConfirmByName";

interface Props<Row> {
  /** The row that somebody wants to be rid of; undefined while nobody does. */
  row: Row | undefined;
  onClose: () => void;
  mutation: UseMutationResult<unknown, Error, Row>;
  name: (row: Row) => string;
  /** The dialog's title: "Delete the credential". */
  title: string;
  /** The button's words, where they are not the title's. */
  action?: string;
  /** What is said once it is done, after the name: "is deleted". */
  done: string;
  /** What will be gone, what stays, and whether and how it can be undone. */
  children: ReactNode;
}

/** Asks for the name of a table's row before it is destroyed, and does it. */
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
