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
  id: "settings",
  component: lazyRouteComponent(() => import("../pages/SettingsLayout"), "SettingsLayout"),
});

const settingsGeneral = createRoute({
  getParentRoute: () => settings,
  path: "/settings",
  component: lazyRouteComponent(() => import("../pages/SettingsPage"), "SettingsPage"),
});

const settingsSignIn = createRoute({
  getParentRoute: () => settings,
  path: "/settings/sign-in",
  component: lazyRouteComponent(() => import("../pages/SignInSettingsPage"), "SignInSettingsPage"),
});

/** The organization itself, and those who work in it. */
export const organizationRoutes = [
  overview,
  access,
  audit,
  mail,
  settings.addChildren([settingsGeneral, settingsSignIn]),
];
