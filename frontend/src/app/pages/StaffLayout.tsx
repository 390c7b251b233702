import { Link, Outlet } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { PageHead } from "@/components/PageHead";
import { TabLinks, tabProps } from "./TabLinks";

/** The tabs of the pages for staff. */
export function StaffLayout(): ReactElement {
  return (
    <>
      <PageHead
        title="Staff"
        lead="How the service runs, for its staff. No customer's records are ever shown here."
      />
      <TabLinks label="Staff">
        <Link to="/staff" {...tabProps(true)}>
          Service
        </Link>
        <Link to="/staff/money" {...tabProps()}>
          Money
        </Link>
      </TabLinks>
      <Outlet />
    </>
  );
}
