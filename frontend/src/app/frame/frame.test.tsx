import { screen, within } from "@testing-library/react";
import { HttpResponse } from "msw";
import { expect, test, vi } from "vitest";
import { queryClient } from "@/app/queryClient";
import { keys } from "@/lib/api/keys";
import { exampleOf } from "@/testing/contract";
import { answer, change, onlySentTo, refuse, respond, sentTo } from "@/testing/server";
import { CLUSTER, loadedTable, visit } from "@/testing/visit";

const SESSION = "GET /api/v1/session";

test("open incidents and firing alerts stand on every page", async () => {
  visit("/prices");
  expect(await screen.findByRole("link", { name: "1 incident" })).toBeVisible();
  expect(await screen.findByRole("link", { name: "1 alert" })).toBeVisible();
});

test("who has not proved their address is asked to, and sent the mail again", async () => {
  change(SESSION, ({ user }) => {
    if (user) user.email_verified = false;
  });
  const { user } = visit("/prices");
  const banner = within(await screen.findByRole("region", { name: "Your address" }));
  await user.click(banner.getByRole("button", { name: "Send the mail again" }));
  await expect
    .poll(() => sentTo("POST /api/v1/signup/verification").map(({ body }) => body))
    .toEqual([{ email: exampleOf(SESSION).user?.email }]);
});

test("who has proved it is not asked", async () => {
  visit("/prices");
  await loadedTable("Prices");
  expect(screen.queryByRole("region", { name: "Your address" })).toBeNull();
});

test("a closed incident shows no mark", async () => {
  change("GET /api/v1/incidents", ({ items: [incident] }) => {
    if (incident) incident.state = "closed";
  });
  visit("/prices");
  await loadedTable("Prices");
  expect(await screen.findByRole("link", { name: "1 alert" })).toBeVisible();
  expect(screen.queryByRole("link", { name: /incident/ })).toBeNull();
});

test("the account's menu signs out, and the page is loaded anew", async () => {
  const load = vi.spyOn(location, "assign").mockReturnValueOnce(undefined);
  const { user } = visit("/prices");
  await user.click(await screen.findByRole("button", { name: /^Account of/ }));
  await user.click(await screen.findByRole("menuitem", { name: "Sign out" }));
  await expect.poll(() => load.mock.lastCall).toEqual(["/signin"]);
  expect(sentTo("DELETE /api/v1/session")).toHaveLength(1);
});

test("somebody of two organizations switches to the other one", async () => {
  change(SESSION, (session) => {
    const [first] = session.organizations;
    if (first) session.organizations.push({ ...first, id: "org_other", name: "Globex" });
  });
  const load = vi.spyOn(location, "assign").mockReturnValueOnce(undefined);
  const { user } = visit("/prices");
  await user.click(await screen.findByRole("button", { name: /^Account of/ }));
  await user.click(await screen.findByRole("menuitem", { name: "Switch to Globex" }));
  await expect.poll(() => load.mock.lastCall).toEqual(["/"]);
  expect(onlySentTo("PATCH /api/v1/session").body).toEqual({ organization_id: "org_other" });
});

test("whose session ended meanwhile is led to the sign-in, and back", async () => {
  const { address } = visit("/prices");
  await loadedTable("Prices");
  const detail = "Sign in first.";
  refuse("GET /api/v1/prices", { status: 401, code: "not_authenticated", detail });
  answer(SESSION, { ...exampleOf(SESSION), user: null, organization: null, organizations: [] });
  await queryClient.invalidateQueries({ queryKey: keys.prices });
  await expect.poll(address).toBe("/signin?next=%2Fprices");
});

test("every page, and every topic of the cluster at hand, is jumped to by name", async () => {
  const { user, address } = visit(`${CLUSTER}/topics`);
  await loadedTable("Topics");
  await user.keyboard("{Control>}k{/Control}");
  const search = await screen.findByRole("textbox", { name: "Jump to" });
  await user.type(search, "payments");
  const palette = within(await screen.findByRole("dialog"));
  await user.click(await palette.findByRole("button", { name: /^payments/ }));
  await expect.poll(address).toBe(`${CLUSTER}/topics/payments`);
});

test("a page that there is not says so", async () => {
  visit("/no/such/page");
  expect(await screen.findByText("There is no such page")).toBeVisible();
});

test("a server that is not reached is said to be so, and nothing was changed", async () => {
  respond("GET /api/v1/prices", () => HttpResponse.error());
  visit("/prices");
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The console could not reach its server.");
  expect(alert).toHaveTextContent("This was only a read: nothing was changed.");
  expect(sentTo("GET /api/v1/prices")).toHaveLength(3);
});

test("a proxy's page in the place of an answer is no answer", async () => {
  const page = "<html><body>Bad Gateway</body></html>";
  const headers = { "Content-Type": "text/html", "X-Request-Id": "req_of_the_proxy" };
  respond("GET /api/v1/prices", () => new HttpResponse(page, { status: 502, headers }));
  visit("/prices");
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The server failed to answer");
  expect(alert).toHaveTextContent("req_of_the_proxy");
});
