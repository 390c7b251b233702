import { Link, Outlet } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { TabLinks, tabProps } from "./TabLinks";

/** The tabs of the pages on people, roles and keys. */
export function AccessLayout(): ReactElement {
  return (
    <>
      <TabLinks label="Access">
        <Link to="/access" {...tabProps(true)}>
          Members
        </Link>
        <Link to="/access/projects" {...tabProps()}>
          Projects
        </Link>
        <Link to="/access/service-accounts" {...tabProps()}>
          Service accounts
        </Link>
        <Link to="/access/keys" {...tabProps()}>
          API keys
        </Link>
      </TabLinks>
      <Outlet />
    </>
  );
}
