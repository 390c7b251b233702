import { useNavigate, useSearch } from "@tanstack/react-router";

interface Panel {
  /** The panel that the address names, whichever it is. */
  name: string | undefined;
  opened: boolean;
  open: () => void;
  close: () => void;
}

/** A side panel that is part of the address: `?panel=<name>`. */
export function usePanel(name: string): Panel {
  const navigate = useNavigate();
  const { panel } = useSearch({ strict: false });
  const show = (value: string | undefined): void => {
    void navigate({ to: ".", search: (before) => ({ ...before, panel: value }) });
  };
  return {
    name: panel,
    opened: panel === name,
    open: () => {
      show(name);
    },
    close: () => {
      show(undefined);
    },
  };
}
