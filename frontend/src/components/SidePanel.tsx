import { Drawer } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";

interface Props {
  opened: boolean;
  onClose: () => void;
  title: string;
  size?: number;
  children: ReactNode;
}

/** A panel at the side of the page, beside which the list stays visible. */
export function SidePanel({ opened, onClose, title, size, children }: Props): ReactElement {
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      title={title}
      size={size}
      overlayProps={{ backgroundOpacity: 0.16 }}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {children}
    </Drawer>
  );
}
