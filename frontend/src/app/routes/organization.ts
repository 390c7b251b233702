import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { auditSearch, panelSearch } from "../search";
import { frame } from "./frame";

const overview = createRoute({
  getParentRoute: () => frame,
  path: "/",
  component: lazyRouteComponent(() => import("../pages/OverviewPage"), "OverviewPage"),
});

const access = createRoute({
  getParentRoute: () => frame,
  path: "/access",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/AccessPage"), "AccessPage"),
});

const audit = createRoute({
  getParentRoute: () => frame,
  path: "/audit",
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import("../pages/AuditPage"), "AuditPage"),
});

const mail = createRoute({
  getParentRoute: () => frame,
  path: "/mail",
  component: lazyRouteComponent(() => import("../pages/MailPage"), "MailPage"),
});

const settings = createRoute({
  getParentRoute: () => frame,
  path: "/settings",
  component: lazyRouteComponent(() => import("../pages/SettingsPage"), "SettingsPage"),
});

/** The organization itself, and those who work in it. */
export const organizationRoutes = [overview, access, audit, mail, settings];
