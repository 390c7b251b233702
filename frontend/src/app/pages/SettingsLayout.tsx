import { Link, Outlet } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { PageHead } from "@/components/PageHead";
import { TabLinks, tabProps } from "./TabLinks";

/** The tabs of what can be set for the organization and for oneself. */
export function SettingsLayout(): ReactElement {
  return (
    <>
      <PageHead title="Settings" />
      <TabLinks label="Settings">
        <Link to="/settings" {...tabProps(true)}>
          General
        </Link>
        <Link to="/settings/organization" {...tabProps()}>
          Organization
        </Link>
        <Link to="/settings/limits" {...tabProps()}>
          Limits
        </Link>
        <Link to="/settings/sign-in" {...tabProps()}>
          Sign-in
        </Link>
      </TabLinks>
      <Outlet />
    </>
  );
}
