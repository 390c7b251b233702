import { screen, within } from "@testing-library/react";
import { HttpResponse } from "msw";
import { expect, test } from "vitest";
import { change, empty, onlySentTo, problem, refuse, respond, sentTo } from "@/testing/server";
import { visit } from "@/testing/visit";

const LIST = "GET /api/v1/local-mail";

test("the newest mail is open, and another one is opened on demand", async () => {
  change(LIST, (page) => {
    const [mail] = page.items;
    if (!mail) throw new Error("the example has no mail");
    const text = "Join: https://localhost/invitation#abc";
    page.items = [{ ...mail, id: "2.eml", subject: "You are invited", text }, mail];
  });
  const { user } = visit("/mail");
  const first = within(await screen.findByRole("article", { name: "You are invited" }));
  expect(first.getByRole("link")).toHaveAttribute("href", "https://localhost/invitation#abc");
  await user.click(screen.getByRole("button", { name: /^Verify your address/ }));
  const second = await screen.findByRole("article", { name: "Verify your address" });
  expect(second).toHaveTextContent("To ada@example.com");
  expect(screen.queryByRole("article", { name: "You are invited" })).toBeNull();
});

test("the printed link shows its token once and leaves the address", async () => {
  const { address } = visit("/mail#of-the-start");
  expect(await screen.findByRole("article", { name: "Verify your address" })).toBeVisible();
  await expect.poll(() => sentTo("POST /api/v1/local-mail")).toHaveLength(1);
  expect(onlySentTo("POST /api/v1/local-mail").body).toEqual({ token: "of-the-start" });
  await expect.poll(address).toBe("/mail");
});

test("a browser that did not show the token reads where the link is", async () => {
  refuse(LIST, { status: 403, code: "mail_token_required", detail: "A link is needed." });
  visit("/mail");
  expect(await screen.findByText("For who started the service")).toBeVisible();
  expect(screen.getByRole("link", { name: "Local mail" })).toBeVisible();
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a wrong token is refused in words", async () => {
  refuse(LIST, { status: 403, code: "mail_token_required", detail: "A link is needed." });
  refuse("POST /api/v1/local-mail", {
    status: 403,
    code: "mail_token_required",
    detail: "It is another token.",
  });
  visit("/mail#wrong");
  expect(await screen.findByRole("alert")).toHaveTextContent("It is another token.");
});

test("without a mail it is said what comes here", async () => {
  empty(LIST);
  visit("/mail");
  expect(await screen.findByText("No mail yet")).toBeVisible();
});

test("a service that really sends mail has none here, and no way to it", async () => {
  // The OpenAPI file does not describe this answer.
  const body = problem({ status: 404, code: "not_found", detail: "Mail is sent." });
  respond(LIST, () => HttpResponse.json(body, { status: 404 }));
  visit("/mail");
  expect(await screen.findByText("Mail is really sent")).toBeVisible();
  expect(screen.queryByRole("link", { name: "Local mail" })).toBeNull();
});
