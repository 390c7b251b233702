import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { exampleOf } from "@/testing/contract";
import { answer, change, onlySentTo, refuse, sentTo } from "@/testing/server";
import { dialog, rowsOf, visit } from "@/testing/visit";

const SESSION = "GET /api/v1/session";
const SIGN_IN = "POST /api/v1/session";
const SIGN_UP = "POST /api/v1/signup";

/** Has the API answer that nobody is signed in until a person signs in or up. */
function signOut(): void {
  answer(SESSION, () => {
    const session = exampleOf(SESSION);
    if (sentTo(SIGN_IN).length + sentTo(SIGN_UP).length > 0) return session;
    return { ...session, user: null, organization: null, organizations: [] };
  });
}

test("who is not signed in is led to the sign-in, and back to the page", async () => {
  signOut();
  const { user, address } = visit("/access/keys");
  await user.type(await screen.findByRole("textbox", { name: "Mail address" }), "ada@example.com");
  expect(address()).toBe("/signin?next=%2Faccess%2Fkeys");
  await user.type(screen.getByLabelText("Password"), "a long sentence");
  await user.click(screen.getByRole("button", { name: "Sign in" }));
  await expect.poll(address).toBe("/access/keys");
  const body = { email: "ada@example.com", password: "a long sentence" };
  expect(onlySentTo(SIGN_IN).body).toEqual(body);
});

test("a wrong password is refused in words, and what was typed stays", async () => {
  signOut();
  refuse(SIGN_IN, {
    status: 401,
    code: "invalid_credentials",
    detail: "The address or the password is wrong.",
  });
  const { user } = visit("/signin");
  const email = await screen.findByRole("textbox", { name: "Mail address" });
  await user.type(email, "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "wrong{Enter}");
  const alert = await screen.findByRole("alert");
  expect(alert).toHaveTextContent("The address or the password is wrong.");
  expect(alert).toHaveTextContent("Check both, then try again.");
  expect(email).toHaveValue("ada@example.com");
});

test("a code is asked for where the account has a second factor", async () => {
  signOut();
  refuse(SIGN_IN, { status: 401, code: "code_required", detail: "A code is needed." });
  const { user } = visit("/signin");
  await user.type(await screen.findByRole("textbox", { name: "Mail address" }), "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "a long sentence{Enter}");
  const code = await screen.findByRole("textbox", { name: "Code" });
  expect(screen.queryByRole("alert")).toBeNull();
  await user.type(code, " 123456 {Enter}");
  await expect.poll(() => sentTo(SIGN_IN)).toHaveLength(2);
  expect(sentTo(SIGN_IN)[1]?.body).toMatchObject({ code: "123456" });
});

test("an empty form is not sent", async () => {
  signOut();
  const { user } = visit("/signin");
  await user.click(await screen.findByRole("button", { name: "Sign in" }));
  expect(screen.getByText("Enter your mail address")).toBeVisible();
  expect(screen.getByText("Enter your password")).toBeVisible();
  expect(sentTo(SIGN_IN)).toEqual([]);
});

test("a sign-up sends what was typed, and a session begins with it", async () => {
  signOut();
  const { user } = visit("/signup");
  await user.type(await screen.findByRole("textbox", { name: "Organization" }), "Acme");
  await user.type(screen.getByRole("textbox", { name: "Mail address" }), "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "a long sentence");
  await user.click(screen.getByRole("button", { name: "Sign up" }));
  await expect.poll(() => sentTo(SIGN_UP)).toHaveLength(1);
  expect(onlySentTo(SIGN_UP).body).toMatchObject({
    organization_name: "Acme",
    email: "ada@example.com",
    password: "a long sentence",
    session: true,
  });
});

test("a link for another password is sent without saying whether the account exists", async () => {
  signOut();
  const { user } = visit("/forgotten");
  await user.type(await screen.findByRole("textbox", { name: "Mail address" }), "ada@example.com");
  await user.click(screen.getByRole("button", { name: "Send the link" }));
  expect(await screen.findByText(/Look into your mail/)).toBeVisible();
  expect(onlySentTo("POST /api/v1/password-reset").body).toEqual({ email: "ada@example.com" });
});

test("another password is set by the mail's link", async () => {
  signOut();
  const { user } = visit("/password-reset#of-the-mail");
  await user.type(await screen.findByLabelText("New password"), "another long sentence");
  await user.click(screen.getByRole("button", { name: "Set the password" }));
  expect(await screen.findByText(/The password is set/)).toBeVisible();
  const body = { token: "of-the-mail", password: "another long sentence" };
  expect(onlySentTo("POST /api/v1/password-reset/confirm").body).toEqual(body);
});

const VERIFY = "POST /api/v1/signup/verify";

test("who opens the link of a sign-up elsewhere gives the password of the sign-up", async () => {
  signOut();
  refuse(VERIFY, { status: 422, code: "sign_up_not_shown", detail: "A password is needed." });
  const { user } = visit("/verify?token=of-the-mail");
  const password = await screen.findByLabelText("Password");
  expect(screen.getByRole("link", { name: "Set a new one" })).toHaveAttribute("href", "/forgotten");
  expect(screen.queryByRole("alert")).toBeNull();
  answer(VERIFY, () => exampleOf(VERIFY));
  await user.type(password, "a long sentence");
  await user.click(screen.getByRole("button", { name: "Verify the address" }));
  expect(await screen.findByText("Your address is verified.")).toBeVisible();
  const bodies = sentTo(VERIFY).map(({ body }) => body);
  expect(bodies).toEqual([
    { token: "of-the-mail" },
    { token: "of-the-mail", password: "a long sentence" },
  ]);
});

test("who has to wait is sent a link, by which they sign in", async () => {
  signOut();
  refuse(SIGN_IN, { status: 429, code: "too_many_requests", detail: "Too many were wrong." });
  const { user } = visit("/signin#of-a-mail");
  await user.type(await screen.findByRole("textbox", { name: "Mail address" }), "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "a long sentence{Enter}");
  await user.click(await screen.findByRole("button", { name: /^Send me a link/ }));
  expect(await screen.findByText("Look into your mail.")).toBeVisible();
  expect(onlySentTo("POST /api/v1/session/link").body).toEqual({ email: "ada@example.com" });
  expect(onlySentTo(SIGN_IN).body).toMatchObject({ link: "of-a-mail" });
});

test("an address that is not verified has no second factor", async () => {
  change(SESSION, ({ user }) => {
    if (user) user.email_verified = false;
  });
  visit("/settings/sign-in");
  const button = await screen.findByRole("button", { name: "Set up an authenticator app" });
  expect(button).toHaveAttribute("data-disabled");
});

test("an address is verified once by the mail's link, or the refusal is shown", async () => {
  const verify = "POST /api/v1/signup/verify";
  refuse(verify, { status: 400, code: "token_invalid", detail: "The link is too old." });
  visit("/verify?token=of-the-mail");
  expect(await screen.findByRole("alert")).toHaveTextContent("The link is too old.");
  expect(onlySentTo(verify).body).toEqual({ token: "of-the-mail" });
});

test("a second factor is set up with the password and a code", async () => {
  const { user } = visit("/settings/sign-in");
  await user.click(await screen.findByRole("button", { name: "Set up an authenticator app" }));
  const panel = await dialog("Set up an authenticator app");
  await user.type(panel.getByLabelText("Password"), "a long sentence");
  await user.click(panel.getByRole("button", { name: "Go on" }));
  expect(await panel.findByRole("img", { name: "QR code of the secret" })).toBeVisible();
  const code = panel.getByRole("textbox", { name: "Code" });
  await user.type(code, "12345{Enter}");
  expect(panel.getByText("Six digits")).toBeVisible();
  await user.type(code, "6{Enter}");
  const codes = await panel.findByTestId("code Recovery codes");
  expect(codes).toHaveTextContent("k3zv-5n7x-2mwl-4ahd tc6y-b3e7-fgu5-ijo2");
  expect(onlySentTo("POST /api/v1/session/totp/confirm").body).toEqual({ code: "123456" });
});

test("a second factor is turned off with password and code", async () => {
  change(SESSION, ({ user }) => {
    if (user) user.two_factor = true;
  });
  const { user } = visit("/settings/sign-in");
  await user.click(await screen.findByRole("button", { name: "Turn off" }));
  const panel = await dialog("Turn two-factor sign-in off");
  await user.type(panel.getByLabelText("Password"), "a long sentence");
  await user.type(panel.getByRole("textbox", { name: "Code" }), "123456");
  await user.click(panel.getByRole("button", { name: "Turn it off" }));
  expect(await screen.findByText("Signing in asks for the password alone")).toBeVisible();
  const body = { password: "a long sentence", code: "123456" };
  expect(onlySentTo("DELETE /api/v1/session/totp").body).toEqual(body);
});

test("a session elsewhere is ended, this one is not", async () => {
  change("GET /api/v1/sessions", (page) => {
    const [here] = page.items;
    if (here)
      page.items.push({ ...here, id: "ses_other", address: "198.51.100.4", current: false });
  });
  const { user } = visit("/settings/sign-in");
  expect(await rowsOf("Sessions")).toHaveLength(2);
  const table = within(screen.getByRole("table", { name: "Sessions" }));
  const [end, ...more] = table.getAllByRole("button", { name: /^Sign out of/ });
  expect(more).toEqual([]);
  if (end) await user.click(end);
  await expect.poll(() => sentTo("DELETE /api/v1/sessions/{id}")).toHaveLength(1);
  expect(onlySentTo("DELETE /api/v1/sessions/{id}").pathname).toMatch(/ses_other$/);
});

test("a password is changed with the present one", async () => {
  const path = "POST /api/v1/session/password";
  refuse(path, { status: 403, code: "password_wrong", detail: "The present one is another." });
  const { user } = visit("/settings/sign-in");
  await user.type(await screen.findByLabelText("Current password"), "not this one");
  await user.type(screen.getByLabelText("New password"), "another long sentence");
  await user.click(screen.getByRole("button", { name: "Change the password" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("The present one is another.");
});
