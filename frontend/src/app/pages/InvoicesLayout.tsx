import { Link, Outlet } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { TabLinks, tabProps } from "./TabLinks";

/** The tabs of invoices, payment and billing details. */
export function InvoicesLayout(): ReactElement {
  return (
    <>
      <TabLinks label="Invoices">
        <Link to="/invoices" {...tabProps(true)}>
          Invoices
        </Link>
        <Link to="/billing" {...tabProps()}>
          Payment
        </Link>
        <Link to="/billing-details" {...tabProps()}>
          Billing details
        </Link>
      </TabLinks>
      <Outlet />
    </>
  );
}
