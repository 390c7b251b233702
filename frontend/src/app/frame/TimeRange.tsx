import { useMatch, useNavigate } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { RangeControl } from "@/features/usage/components/RangeControl";

/** The control of the time range, on pages that show one. */
export function TimeRange(): ReactElement | null {
  const navigate = useNavigate();
  const match = useMatch({ from: "/frame/money/usage", shouldThrow: false });
  if (!match) return null;
  return (
    <RangeControl
      choice={match.search}
      onChange={({ range, from, to }) =>
        void navigate({
          from: "/usage",
          to: "/usage",
          search: (before) => ({ ...before, range, from, to }),
        })
      }
    />
  );
}
