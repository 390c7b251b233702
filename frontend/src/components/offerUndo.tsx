import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import type { ReactNode } from "react";

interface Offer {
  /** One notice for each: the same id replaces the one before. */
  id: string;
  /** What was done. */
  title: string;
  /** More of it, before the button. */
  message?: ReactNode;
  undo: () => void;
}

const OFFERED_MS = 12_000;

/** Says that something was done, with a button that takes it back. */
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
