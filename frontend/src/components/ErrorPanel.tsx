import { Button, Group } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { ReactElement } from "react";
import { explain } from "@/lib/api/problem";
import { CopyText } from "./CopyText";
import classes from "./ErrorPanel.module.css";

interface Props {
  error: unknown;
  /** What failed, such as "The topics could not be read". */
  what: string;
  onRetry?: () => void;
}

/** Explains an error: what happened, what was not lost, what to do, and the request's id. */
export function ErrorPanel({ error, what, onRetry }: Props): ReactElement {
  const { happened, kept, next, requestId } = explain(error);
  return (
    <div className={classes.root} role="alert">
      <IconAlertTriangle size={18} className={classes.icon} aria-hidden="true" />
      <div className={classes.body}>
        <strong>{what}</strong>
        <p>{happened}</p>
        <p className={classes.quiet}>
          {kept} {next}
        </p>
        <Group gap="md" mt={6}>
          {onRetry && (
            <Button variant="default" onClick={onRetry}>
              Try again
            </Button>
          )}
          {requestId && (
            <span className={classes.request}>
              Request <CopyText value={requestId} what="the request id" />
            </span>
          )}
        </Group>
      </div>
    </div>
  );
}
