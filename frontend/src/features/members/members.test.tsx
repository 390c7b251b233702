import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { exampleOf } from "@/testing/contract";
import { answer, change, empty, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, dialog, firstRow, visit } from "@/testing/visit";

const INVITE = "POST /api/v1/invitations";
const ACCEPT = "POST /api/v1/invitations/accept";

test("members are listed with their role and their second factor", async () => {
  visit("/access");
  const cells = await firstRow("Members");
  expect(cells.slice(0, 5)).toEqual([
    "ada@example.com",
    "Ada Lovelace",
    "Developer",
    "On",
    "20 min ago",
  ]);
});

test("who looks is marked in the list", async () => {
  change("GET /api/v1/members", ({ items: [member] }) => {
    if (member) member.user_id = "usr_7mwl5zc2kq3xv4ahdn6t";
  });
  visit("/access");
  expect((await firstRow("Members"))[0]).toBe("ada@example.com you");
});

test("an invitation that waits is sent again and taken back", async () => {
  const { user } = visit("/access");
  expect((await firstRow("Invitations")).join(" ")).toContain("Waiting");
  await user.click(screen.getByRole("button", { name: /again.*ada@example\.com/i }));
  expect(await screen.findByText("Sent to ada@example.com again")).toBeVisible();
  await user.click(screen.getByRole("button", { name: /^Take back/ }));
  expect(await screen.findByText(/The link of ada@example\.com has no effect/)).toBeVisible();
});

test("an invitation that expired says so", async () => {
  change("GET /api/v1/invitations", ({ items: [invitation] }) => {
    if (invitation) invitation.state = "expired";
  });
  visit("/access");
  expect((await firstRow("Invitations")).join(" ")).toContain("Expired");
});

test("somebody is invited with a role", async () => {
  const { user } = visit("/access?panel=invite");
  const panel = await dialog("Invite somebody");
  const email = panel.getByRole("textbox", { name: "Mail address" });
  await user.type(email, "nobody{Enter}");
  expect(email).toBeInvalid();
  expect(sentTo(INVITE)).toEqual([]);
  await user.clear(email);
  await user.type(email, "bob@example.com");
  await choose(user, panel, "Role", /^Viewer/);
  await user.click(panel.getByRole("button", { name: "Send the invitation" }));
  await expect.poll(() => sentTo(INVITE)).toHaveLength(1);
  expect(onlySentTo(INVITE).body).toMatchObject({ email: "bob@example.com", role: "viewer" });
});

test("a member is removed only after the address was typed", async () => {
  const { user } = visit("/access");
  await user.click(await screen.findByRole("button", { name: "Remove ada@example.com" }));
  const asked = await dialog(/^Remove/);
  await user.type(asked.getByRole("textbox"), "ada{Enter}");
  expect(sentTo("DELETE /api/v1/members/{id}")).toEqual([]);
  await user.type(asked.getByRole("textbox"), "@example.com{Enter}");
  await expect.poll(() => sentTo("DELETE /api/v1/members/{id}")).toHaveLength(1);
});

test("a list that is refused shows the problem's text", async () => {
  refuse("GET /api/v1/members", { status: 403, detail: "The organization is closed." });
  visit("/access");
  expect(await screen.findByText(/The organization is closed\./)).toBeVisible();
});

test("without an invitation it is said what one does", async () => {
  empty("GET /api/v1/invitations");
  visit("/access");
  expect(await screen.findByText("No invitation")).toBeVisible();
});

test("a viewer sees members and no invitations", async () => {
  actAs("viewer");
  visit("/access");
  await firstRow("Members");
  expect(screen.queryByText("Invitations")).toBeNull();
  expect(sentTo("GET /api/v1/invitations")).toEqual([]);
  const invite = screen.getByRole("button", { name: "Invite somebody" });
  expect(invite).toHaveAccessibleDescription(/yours is viewer/);
});

/** Has the API answer that nobody is signed in. */
function signOut(): void {
  const session = exampleOf("GET /api/v1/session");
  answer("GET /api/v1/session", { ...session, user: null, organization: null, organizations: [] });
}

test("who has no account makes one with the mail's link", async () => {
  signOut();
  const { user } = visit("/invitation#of-the-mail");
  await user.type(await screen.findByRole("textbox", { name: "Your name" }), "Ada");
  const join = screen.getByRole("button", { name: "Make an account and join" });
  await user.type(screen.getByLabelText("Password"), "short");
  await user.click(join);
  expect(sentTo(ACCEPT)).toEqual([]);
  await user.type(screen.getByLabelText("Password"), " but not any more");
  await user.click(join);
  expect(await screen.findByText(/You belong to Acme now/)).toBeVisible();
  expect(onlySentTo(ACCEPT).body).toEqual({
    token: "of-the-mail",
    name: "Ada",
    password: "short but not any more",
  });
});

test("a link that was used already shows the problem's text", async () => {
  refuse(ACCEPT, { status: 400, code: "token_invalid", detail: "The link was used already." });
  const { user } = visit("/invitation#of-the-mail");
  await user.click(await screen.findByRole("button", { name: "Join as ada@example.com" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("The link was used already.");
});
