import type { ErrorComponentProps } from "@tanstack/react-router";
import { type ReactElement, useEffect } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { LostPart, reloadPage } from "@/lib/parts";

/** Shown in place of a page that failed to load or to render. */
export function RouteError({ error, reset }: ErrorComponentProps): ReactElement {
  const lost = error instanceof LostPart;
  useEffect(() => {
    if (lost) void reloadPage(true);
  }, [lost]);
  return (
    <div style={{ maxWidth: 720, margin: "24px auto", padding: 16 }}>
      <ErrorPanel
        error={error}
        what="This page could not be shown"
        onRetry={lost ? () => void reloadPage(false) : reset}
      />
    </div>
  );
}
