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
  id: "access",
  component: lazyRouteComponent(() => import("../pages/AccessLayout"), "AccessLayout"),
});

const members = createRoute({
  getParentRoute: () => access,
  path: "/access",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/MembersPage"), "MembersPage"),
});

const projects = createRoute({
  getParentRoute: () => access,
  path: "/access/projects",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/ProjectsPage"), "ProjectsPage"),
});

const serviceAccounts = createRoute({
  getParentRoute: () => access,
  path: "/access/service-accounts",
  validateSearch: panelSearch,
  component: lazyRouteComponent(
    () => import("../pages/ServiceAccountsPage"),
    "ServiceAccountsPage",
  ),
});

const apiKeys = createRoute({
  getParentRoute: () => access,
  path: "/access/keys",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/ApiKeysPage"), "ApiKeysPage"),
});

const alerts = createRoute({
  getParentRoute: () => frame,
  path: "/alerts",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/AlertsPage"), "AlertsPage"),
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

const settingsOrganization = createRoute({
  getParentRoute: () => settings,
  path: "/settings/organization",
  component: lazyRouteComponent(
    () => import("../pages/OrganizationSettingsPage"),
    "OrganizationSettingsPage",
  ),
});

const settingsLimits = createRoute({
  getParentRoute: () => settings,
  path: "/settings/limits",
  component: lazyRouteComponent(() => import("../pages/LimitsPage"), "LimitsPage"),
});

const incidents = createRoute({
  getParentRoute: () => frame,
  path: "/incidents",
  component: lazyRouteComponent(() => import("../pages/IncidentsPage"), "IncidentsPage"),
});

const staff = createRoute({
  getParentRoute: () => frame,
  path: "/staff",
  component: lazyRouteComponent(() => import("../pages/StaffPage"), "StaffPage"),
});

/** The routes of the organization and its people. */
export const organizationRoutes = [
  overview,
  access.addChildren([members, projects, serviceAccounts, apiKeys]),
  alerts,
  audit,
  mail,
  incidents,
  staff,
  settings.addChildren([settingsGeneral, settingsOrganization, settingsLimits, settingsSignIn]),
];
