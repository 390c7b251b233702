import { createRoute } from "@tanstack/react-router";
import { costsSearch, invoiceSearch, panelSearch, paymentSearch, usageSearch } from "../search";
import { frame } from "./frame";
import { page } from "./page";

const money = createRoute({
  getParentRoute: () => frame,
  id: "money",
  component: page(() => import("../pages/MoneyLayout"), "MoneyLayout"),
});

const usage = createRoute({
  getParentRoute: () => money,
  path: "/usage",
  validateSearch: usageSearch,
  component: page(() => import("../pages/UsagePage"), "UsagePage"),
});

const costs = createRoute({
  getParentRoute: () => money,
  path: "/usage/costs",
  validateSearch: costsSearch,
  component: page(() => import("../pages/CostsPage"), "CostsPage"),
});

const budgets = createRoute({
  getParentRoute: () => money,
  path: "/usage/budgets",
  validateSearch: panelSearch,
  component: page(() => import("../pages/BudgetsPage"), "BudgetsPage"),
});

const prices = createRoute({
  getParentRoute: () => money,
  path: "/prices",
  component: page(() => import("../pages/PricesPage"), "PricesPage"),
});

const billed = createRoute({
  getParentRoute: () => frame,
  id: "billed",
  component: page(() => import("../pages/InvoicesLayout"), "InvoicesLayout"),
});

const invoices = createRoute({
  getParentRoute: () => billed,
  path: "/invoices",
  component: page(() => import("../pages/InvoicesPage"), "InvoicesPage"),
});

const payment = createRoute({
  getParentRoute: () => billed,
  path: "/billing",
  validateSearch: paymentSearch,
  component: page(() => import("../pages/PaymentPage"), "PaymentPage"),
});

const billingDetails = createRoute({
  getParentRoute: () => billed,
  path: "/billing-details",
  component: page(() => import("../pages/BillingDetailsPage"), "BillingDetailsPage"),
});

const invoice = createRoute({
  getParentRoute: () => frame,
  path: "/invoices/$invoiceId",
  validateSearch: invoiceSearch,
  component: page(() => import("../pages/InvoicePage"), "InvoicePage"),
});

/** The routes of usage, costs, budgets, invoices and payments. */
export const moneyRoutes = [
  money.addChildren([usage, costs, budgets, prices]),
  billed.addChildren([invoices, payment, billingDetails]),
  invoice,
];
