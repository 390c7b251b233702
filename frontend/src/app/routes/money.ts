import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { costsSearch, panelSearch, usageSearch } from "../search";
import { frame } from "./frame";

const money = createRoute({
  getParentRoute: () => frame,
  id: "money",
  component: lazyRouteComponent(() => import("../pages/MoneyLayout"), "MoneyLayout"),
});

const usage = createRoute({
  getParentRoute: () => money,
  path: "/usage",
  validateSearch: usageSearch,
  component: lazyRouteComponent(() => import("../pages/UsagePage"), "UsagePage"),
});

const costs = createRoute({
  getParentRoute: () => money,
  path: "/usage/costs",
  validateSearch: costsSearch,
  component: lazyRouteComponent(() => import("../pages/CostsPage"), "CostsPage"),
});

const budgets = createRoute({
  getParentRoute: () => money,
  path: "/usage/budgets",
  validateSearch: panelSearch,
  component: lazyRouteComponent(() => import("../pages/BudgetsPage"), "BudgetsPage"),
});

const prices = createRoute({
  getParentRoute: () => money,
  path: "/prices",
  component: lazyRouteComponent(() => import("../pages/PricesPage"), "PricesPage"),
});

const billed = createRoute({
  getParentRoute: () => frame,
  id: "billed",
  component: lazyRouteComponent(() => import("../pages/InvoicesLayout"), "InvoicesLayout"),
});

const invoices = createRoute({
  getParentRoute: () => billed,
  path: "/invoices",
  component: lazyRouteComponent(() => import("../pages/InvoicesPage"), "InvoicesPage"),
});

const billingDetails = createRoute({
  getParentRoute: () => billed,
  path: "/billing-details",
  component: lazyRouteComponent(() => import("../pages/BillingDetailsPage"), "BillingDetailsPage"),
});

const invoice = createRoute({
  getParentRoute: () => frame,
  path: "/invoices/$invoiceId",
  component: lazyRouteComponent(() => import("../pages/InvoicePage"), "InvoicePage"),
});

/** The routes of usage, costs, budgets and invoices. */
export const moneyRoutes = [
  money.addChildren([usage, costs, budgets, prices]),
  billed.addChildren([invoices, billingDetails]),
  invoice,
];
