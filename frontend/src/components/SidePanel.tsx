import { Drawer } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import { legible } from "@/lib/format/legible";

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
      title={legible(title)}
      size={size}
      overlayProps={{ backgroundOpacity: 0.16 }}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {children}
    </Drawer>
  );
}
