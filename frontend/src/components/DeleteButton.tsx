import { notifications } from "@mantine/notifications";
import type { UseMutationResult } from "@tanstack/react-query";
import { type ReactElement, type ReactNode, useState } from "react";
import { ConfirmByName } from "./ConfirmByName";
import { GuardedButton } from "./GuardedButton";

interface Props {
  /** What is deleted: it has to be typed. */
  name: string;
  /** The dialog's title, and its button's words: "Delete the topic". */
  title: string;
  /** The words of the button that opens the dialog. */
  label?: string;
  mutation: UseMutationResult<unknown, Error, void>;
  onDeleted: () => void;
  refused: string | undefined;
  /** What will be gone, what stays, and whether and how it can be undone. */
  children: ReactNode;
}

/** The button at a page's head that deletes what the page is about. */
export function DeleteButton(props: Props): ReactElement {
  const { name, title, label = "Delete", mutation, onDeleted, refused, children } = props;
  const [asking, setAsking] = useState(false);
  return (
    <>
      <GuardedButton
        refused={refused}
        variant="default"
        onClick={() => {
          setAsking(true);
        }}
      >
        {label}
      </GuardedButton>
      <ConfirmByName
        opened={asking}
        onClose={() => {
          setAsking(false);
          mutation.reset();
        }}
        name={name}
        title={title}
        action={title}
        pending={mutation.isPending}
        error={mutation.error}
        onConfirm={() => {
          mutation.mutate(undefined, {
            onSuccess: () => {
              notifications.show({ message: `${name} is deleted` });
              onDeleted();
            },
          });
        }}
      >
        {children}
      </ConfirmByName>
    </>
  );
}
