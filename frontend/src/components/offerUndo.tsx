import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import type { ReactNode } from "react";

interface Offer {
  /** The id of the notice: another notice with the same id replaces it. */
  id: string;
  /** What was done. */
  title: string;
  /** A longer text before the button. */
  message?: ReactNode;
  undo: () => void;
}

const OFFERED_MS = 12_000;

/** Shows a notice that something was done, with a button that undoes it. */
export function offerUndo({ id, title, message, undo }: Offer): void {
  notifications.show({
    id,
    autoClose: OFFERED_MS,
    title,
    message: (
      <>
        {message}{" "}
        <Button
          variant="subtle"
          size="compact-xs"
          ml={message === undefined ? -8 : 0}
          onClick={() => {
            notifications.hide(id);
            undo();
          }}
        >
          Undo
        </Button>
      </>
    ),
  });
}
