import { createRoute } from "@tanstack/react-router";
import { auditSearch, panelSearch } from "../search";
import { frame } from "./frame";
import { page } from "./page";

const overview = createRoute({
  getParentRoute: () => frame,
  path: "/",
  component: page(() => import("../pages/OverviewPage"), "OverviewPage"),
});

const access = createRoute({
  getParentRoute: () => frame,
  id: "access",
  component: page(() => import("../pages/AccessLayout"), "AccessLayout"),
});

const members = createRoute({
  getParentRoute: () => access,
  path: "/access",
  validateSearch: panelSearch,
  component: page(() => import("../pages/MembersPage"), "MembersPage"),
});

const projects = createRoute({
  getParentRoute: () => access,
  path: "/access/projects",
  validateSearch: panelSearch,
  component: page(() => import("../pages/ProjectsPage"), "ProjectsPage"),
});

const serviceAccounts = createRoute({
  getParentRoute: () => access,
  path: "/access/service-accounts",
  validateSearch: panelSearch,
  component: page(() => import("../pages/ServiceAccountsPage"), "ServiceAccountsPage"),
});

const apiKeys = createRoute({
  getParentRoute: () => access,
  path: "/access/keys",
  validateSearch: panelSearch,
  component: page(() => import("../pages/ApiKeysPage"), "ApiKeysPage"),
});

const alerts = createRoute({
  getParentRoute: () => frame,
  path: "/alerts",
  validateSearch: panelSearch,
  component: page(() => import("../pages/AlertsPage"), "AlertsPage"),
});

const audit = createRoute({
  getParentRoute: () => frame,
  path: "/audit",
  validateSearch: auditSearch,
  component: page(() => import("../pages/AuditPage"), "AuditPage"),
});

const mail = createRoute({
  getParentRoute: () => frame,
  path: "/mail",
  component: page(() => import("../pages/MailPage"), "MailPage"),
});

const settings = createRoute({
  getParentRoute: () => frame,
  id: "settings",
  component: page(() => import("../pages/SettingsLayout"), "SettingsLayout"),
});

const settingsGeneral = createRoute({
  getParentRoute: () => settings,
  path: "/settings",
  component: page(() => import("../pages/SettingsPage"), "SettingsPage"),
});

const settingsSignIn = createRoute({
  getParentRoute: () => settings,
  path: "/settings/sign-in",
  component: page(() => import("../pages/SignInSettingsPage"), "SignInSettingsPage"),
});

const settingsOrganization = createRoute({
  getParentRoute: () => settings,
  path: "/settings/organization",
  component: page(() => import("../pages/OrganizationSettingsPage"), "OrganizationSettingsPage"),
});

const settingsLimits = createRoute({
  getParentRoute: () => settings,
  path: "/settings/limits",
  component: page(() => import("../pages/LimitsPage"), "LimitsPage"),
});

const incidents = createRoute({
  getParentRoute: () => frame,
  path: "/incidents",
  component: page(() => import("../pages/IncidentsPage"), "IncidentsPage"),
});

const staff = createRoute({
  getParentRoute: () => frame,
  id: "staff-area",
  component: page(() => import("../pages/StaffLayout"), "StaffLayout"),
});

const staffService = createRoute({
  getParentRoute: () => staff,
  path: "/staff",
  component: page(() => import("../pages/StaffPage"), "StaffPage"),
});

const staffMoney = createRoute({
  getParentRoute: () => staff,
  path: "/staff/money",
  validateSearch: panelSearch,
  component: page(() => import("../pages/StaffMoneyPage"), "StaffMoneyPage"),
});

/** The routes of the organization and its people. */
export const organizationRoutes = [
  overview,
  access.addChildren([members, projects, serviceAccounts, apiKeys]),
  alerts,
  audit,
  mail,
  incidents,
  staff.addChildren([staffService, staffMoney]),
  settings.addChildren([settingsGeneral, settingsOrganization, settingsLimits, settingsSignIn]),
];
