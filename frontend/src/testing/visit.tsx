import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRouter, RouterProvider } from "@tanstack/react-router";
import { render, screen, within } from "@testing-library/react";
import userEvent, { type UserEvent } from "@testing-library/user-event";
import { queryClient } from "@/app/queryClient";
import { router as served } from "@/app/router";
import { theme } from "@/app/theme";
import type { Role } from "@/lib/api/types";
import { exampleOf } from "./contract";
import { answer } from "./server";

/** The address of the examples' cluster. */
export const CLUSTER = "/clusters/cl_3k2jq7v5xw4mzn6yt2ba";

type Queries = ReturnType<typeof within>;

/** A person at an open page of the console. */
export interface Visit {
  user: UserEvent;
  /** The page's address at this moment, with its query. */
  address: () => string;
}

/** Opens a page of the console as it is served, at its address. */
export function visit(address: string): Visit {
  const history = createMemoryHistory({ initialEntries: [address] });
  const router = createRouter({ ...served.options, history });
  render(
    <MantineProvider
      theme={theme}
      env="test"
      // Testing Library computes the visibility of every element from all rules of all style
      // sheets.
      withCssVariables={false}
      withGlobalClasses={false}
    >
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
      <Notifications />
    </MantineProvider>,
  );
  return { user: userEvent.setup({ delay: null }), address: () => history.location.href };
}

/** Has the API answer that the person has this role in the organization. */
export function actAs(role: Role): void {
  const session = exampleOf("GET /api/v1/session");
  if (session.organization) session.organization.role = role;
  answer("GET /api/v1/session", session);
  const projects = exampleOf("GET /api/v1/projects");
  const items = projects.items.map((project) => ({ ...project, permissions: ["read" as const] }));
  answer("GET /api/v1/projects", { ...projects, items });
}

/** Returns the cells of a table's first row below its head, as text. */
export async function firstRow(table: string | RegExp): Promise<string[]> {
  const rows = await rowsOf(table);
  return rows[0] ?? [];
}

/** Returns the cells of a table's rows below its head, as text, once it is loaded. */
export async function rowsOf(table: string | RegExp): Promise<string[][]> {
  const loaded = await loadedTable(table);
  const [, ...rows] = within(loaded).getAllByRole("row");
  return rows.map((row) =>
    within(row)
      .getAllByRole("cell")
      .map((cell) => cell.textContent),
  );
}

/** Returns a table, once it is loaded. */
export async function loadedTable(name: string | RegExp): Promise<HTMLElement> {
  return screen.findByRole("table", { name, busy: false });
}

/** Returns queries inside a side panel or a dialog, once it is open. */
export async function dialog(name: string | RegExp): Promise<Queries> {
  return within(await screen.findByRole("dialog", { name }));
}

/** Chooses an option from a list that opens below a field. */
export async function choose(
  user: UserEvent,
  within_: Queries,
  field: string | RegExp,
  option: string | RegExp,
): Promise<void> {
  await user.click(within_.getByRole("combobox", { name: field }));
  await user.click(await screen.findByRole("option", { name: option }));
}
