import { Link, Outlet } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { PageHead } from "@/components/PageHead";
import { TabLinks, tabProps } from "./TabLinks";

/** The tabs of the settings of the organization and of the person. */
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
