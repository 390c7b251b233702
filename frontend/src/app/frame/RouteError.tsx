import type { ErrorComponentProps } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";

/** Shown in place of a page that failed to load or to render. */
export function RouteError({ error, reset }: ErrorComponentProps): ReactElement {
  return (
    <div style={{ maxWidth: 720, margin: "24px auto", padding: 16 }}>
      <ErrorPanel error={error} what="This page could not be shown" onRetry={reset} />
    </div>
  );
}
