import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";

export function NotFound(): ReactElement {
  return (
    <div style={{ maxWidth: 560, margin: "12vh auto", padding: 16 }}>
      <Empty
        title="There is no such page"
        action={
          <Button renderRoot={(props) => <Link to="/" {...props} />}>Go to the overview</Button>
        }
      >
        The address may be mistyped, or what it showed was deleted.
      </Empty>
    </div>
  );
}
