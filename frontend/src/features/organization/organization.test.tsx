import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { change, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, dialog, visit } from "@/testing/visit";

const PAGE = "/settings/organization";
const UPDATE = "PATCH /api/v1/organizations/current";
const CLOSE = "POST /api/v1/organizations/current:close";

test("allowed networks are sent one by one, and what is no network is not sent", async () => {
  const { user } = visit(PAGE);
  const addresses = await screen.findByRole("textbox", { name: "Allowed addresses" });
  expect(addresses).toHaveValue("192.0.2.0/24\n2001:db8:17::/48");
  await user.clear(addresses);
  await user.type(addresses, "203.0.113.0/24{Enter} 192.0.2.7");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(addresses).toHaveAccessibleDescription(/192\.0\.2\.7 is no network/);
  expect(sentTo(UPDATE)).toEqual([]);
  await user.type(addresses, "/32 ");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("The rules hold from now on")).toBeVisible();
  expect(onlySentTo(UPDATE).body).toMatchObject({
    allowed_addresses: ["203.0.113.0/24", "192.0.2.7/32"],
    two_factor_required: true,
  });
});

test("rules that would shut oneself out are saved only when that is meant", async () => {
  refuse(UPDATE, { status: 409, code: "locks_you_out", detail: "Your address is not in them." });
  const { user } = visit(PAGE);
  const addresses = await screen.findByRole("textbox", { name: "Allowed addresses" });
  expect(screen.queryByRole("checkbox")).toBeNull();
  await user.clear(addresses);
  await user.type(addresses, "198.51.100.0/24");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("Your address is not in them.");
  await user.click(screen.getByRole("checkbox", { name: "Save it even if it shuts me out" }));
  await user.click(screen.getByRole("button", { name: "Save" }));
  await expect.poll(() => sentTo(UPDATE)).toHaveLength(2);
  expect(sentTo(UPDATE)[1]?.query).toEqual({ force: "true" });
});

test("an organization is closed only after its name was typed", async () => {
  const { user } = visit(PAGE);
  await user.click(await screen.findByRole("button", { name: "Close the organization" }));
  const panel = await dialog("Close the organization");
  const close = panel.getByRole("button", { name: "Close the organization" });
  expect(panel.queryByRole("textbox", { name: /^Code/ })).toBeNull();
  await user.type(panel.getByRole("textbox"), "Acm");
  expect(close).toBeDisabled();
  await user.type(panel.getByRole("textbox"), "e");
  await user.click(close);
  await expect.poll(() => sentTo(CLOSE)).toHaveLength(1);
  expect(onlySentTo(CLOSE).body).toEqual({ name: "Acme" });
});

test("who has a second factor gives a code to close the organization", async () => {
  change("GET /api/v1/session", ({ user }) => {
    if (user) user.two_factor = true;
  });
  const { user } = visit(PAGE);
  await user.click(await screen.findByRole("button", { name: "Close the organization" }));
  const panel = await dialog("Close the organization");
  await user.type(panel.getByRole("textbox", { name: /^Type/ }), "Acme");
  const close = panel.getByRole("button", { name: "Close the organization" });
  expect(close).toBeDisabled();
  await user.type(panel.getByRole("textbox", { name: /^Code/ }), "123456");
  expect(close).toBeEnabled();
});

test("a closed organization can be read, and not changed", async () => {
  const closed_at = "2026-11-21T15:00:00Z";
  change(
    "GET /api/v1/organizations/current",
    (organization) => (organization.closed_at = closed_at),
  );
  visit(PAGE);
  expect(await screen.findByText(/It can be read, and not changed/)).toBeVisible();
  const save = screen.getByRole("button", { name: "Save" });
  expect(save).toHaveAccessibleDescription("The organization is closed.");
});

test("an admin changes the rules and does not close, a viewer does neither", async () => {
  actAs("viewer");
  visit(PAGE);
  const close = await screen.findByRole("button", { name: "Close the organization" });
  expect(close).toHaveAccessibleDescription(/^Owners may/);
  expect(screen.getByRole("button", { name: "Export everything" })).toHaveAttribute(
    "aria-disabled",
    "true",
  );
  expect(screen.getByRole("switch", { name: /^Two-factor/ })).toBeDisabled();
});

test("an organization that cannot be read shows the problem's text", async () => {
  const detail = "Set up a second factor first.";
  refuse("GET /api/v1/organizations/current", { status: 403, detail });
  visit(PAGE);
  expect(await screen.findByText(new RegExp(detail))).toBeVisible();
});
