import { Link, Outlet } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { TabLinks, tabProps } from "./TabLinks";

/** The tabs of usage, costs and budgets. */
export function MoneyLayout(): ReactElement {
  return (
    <>
      <TabLinks label="Usage">
        <Link to="/usage" {...tabProps(true)}>
          Usage
        </Link>
        <Link to="/usage/costs" {...tabProps()}>
          Cost
        </Link>
        <Link to="/usage/budgets" {...tabProps()}>
          Budgets
        </Link>
        <Link to="/prices" {...tabProps()}>
          Prices
        </Link>
      </TabLinks>
      <Outlet />
    </>
  );
}
