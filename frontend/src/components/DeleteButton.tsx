import { notifications } from "@mantine/notifications";
import type { UseMutationResult } from "@tanstack/react-query";
import { type ReactElement, type ReactNode, useState } from "react";
import { ConfirmByName } from "./ConfirmByName";
import { GuardedButton } from "./GuardedButton";

interface Props {
  /** The name of what is deleted, which the person must type. */
  name: string;
  /** The title of the dialog and the text of its button, such as "Delete the topic". */
  title: string;
  /** The text of the button that opens the dialog. */
  label?: string;
  mutation: UseMutationResult<unknown, Error, void>;
  /** Leaves the page, which shows what is gone. */
  onDeleted: () => Promise<void>;
  /** Forgets what was read of it, once the page is left. */
  forget: () => void;
  refused: string | undefined;
  /** What is deleted, what stays, and whether and how it can be undone. */
  children: ReactNode;
}

/** The button at the head of a page that deletes the item of the page. */
export function DeleteButton(props: Props): ReactElement {
  const { name, title, label = "Delete", mutation, onDeleted, forget, refused, children } = props;
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
              void onDeleted().then(forget);
            },
          });
        }}
      >
        {children}
      </ConfirmByName>
    </>
  );
}
