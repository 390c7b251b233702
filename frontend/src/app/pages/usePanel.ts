import { useNavigate, useSearch } from "@tanstack/react-router";

interface Panel {
  /** The name of the panel in the address, whether or not it is this one. */
  name: string | undefined;
  opened: boolean;
  open: () => void;
  /** Opens another panel of the page. */
  show: (name: string) => void;
  close: () => void;
}

/** Opens and closes a side panel by the address: `?panel=<name>`. */
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
    show,
    close: () => {
      show(undefined);
    },
  };
}
