import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { exampleOf } from "@/testing/contract";
import { answer, change, empty, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, CLUSTER, dialog, firstRow, rowsOf, visit } from "@/testing/visit";

const ACLS = `${CLUSTER}/acls`;
const LIST = "GET /api/v1/clusters/{cluster_id}/acls";
const PRINCIPAL = "User:cred_5xw4mzn6yt2ba3k2jq7v";

test("a rule is listed with the name of its credential", async () => {
  visit(ACLS);
  expect(await firstRow("ACLs")).toEqual([
    `checkout ${PRINCIPAL}`,
    "Allow",
    "READ",
    "topic payments",
    "Delete",
  ]);
});

test("without a rule it is said what is allowed", async () => {
  empty(LIST);
  visit(ACLS);
  expect(await screen.findByText("No ACL yet")).toBeVisible();
});

test("a list that is refused shows the problem's text, and can be read again", async () => {
  refuse(LIST, { status: 403, detail: "Your role was taken from you." });
  const { user } = visit(ACLS);
  expect(await screen.findByRole("alert")).toHaveTextContent("Your role was taken from you.");
  answer(LIST, exampleOf(LIST));
  await user.click(screen.getByRole("button", { name: "Try again" }));
  expect(await firstRow("ACLs")).toContain("READ");
});

test("many rules can be searched by their words", async () => {
  change(LIST, (page) => {
    const [first] = page.items;
    if (!first) throw new Error("the example has no rule");
    page.items = Array.from({ length: 9 }, (_, number) => ({
      ...first,
      id: `acl_${String(number)}`,
      resource_name: `topic-${String(number)}`,
    }));
  });
  const { user } = visit(ACLS);
  await user.type(await screen.findByLabelText("Find an ACL"), "topic-7");
  expect((await rowsOf("ACLs")).map((cells) => cells[3])).toEqual(["topic topic-7"]);
});

test("a template's rules are seen before they are made", async () => {
  const { user } = visit(`${ACLS}?panel=new`);
  const panel = await dialog("Add ACLs");
  await user.click(await panel.findByRole("radio", { name: /^Consume/ }));
  const preview = within(panel.getByRole("list", { name: "Rules that will be added" }));
  expect(await preview.findByText(/READ/)).toBeVisible();
  await user.type(panel.getByRole("textbox", { name: "Group" }), "billing");
  await user.click(panel.getByRole("button", { name: "Add the rule" }));
  expect(await panel.findByText("Choose a credential")).toBeVisible();
  expect(sentTo("POST /api/v1/clusters/{cluster_id}/acls:apply-template")).toEqual([]);

  await choose(user, panel, "Credential", /^checkout/);
  await user.click(panel.getByRole("button", { name: "Add the rule" }));
  expect(await screen.findByText("One rule added")).toBeVisible();
  const { body } = onlySentTo("POST /api/v1/clusters/{cluster_id}/acls:apply-template");
  expect(body).toMatchObject({ template: "consumer", principal: PRINCIPAL, group: "billing" });
});

test("a rule by hand is sent as it was chosen", async () => {
  const { user } = visit(`${ACLS}?panel=new`);
  const panel = await dialog("Add ACLs");
  await panel.findByRole("combobox", { name: "Credential" });
  await choose(user, panel, "Credential", /^All credentials/);
  await user.click(panel.getByRole("radio", { name: /^One rule/ }));
  await choose(user, panel, "Resource", "Group");
  await choose(user, panel, "Permission", /^Deny/);
  await user.type(panel.getByRole("combobox", { name: "Group" }), "audit-");
  await user.click(panel.getByRole("switch", { name: "Also all names that begin with it" }));
  await user.click(panel.getByRole("button", { name: "Add the rule" }));
  expect(await screen.findByText("One rule added")).toBeVisible();
  expect(onlySentTo("POST /api/v1/clusters/{cluster_id}/acls:batch").body).toEqual({
    items: [
      {
        principal: "User:*",
        resource_type: "GROUP",
        resource_name: "audit-",
        pattern_type: "PREFIXED",
        operation: "DESCRIBE",
        permission: "DENY",
        host: "*",
      },
    ],
  });
});

test("a deleted rule is put back from its notice", async () => {
  const { user } = visit(ACLS);
  await user.click(await screen.findByRole("button", { name: /^Delete: .* for User:cred/ }));
  expect(await screen.findByText("The rule is deleted")).toBeVisible();
  const { pathname } = onlySentTo("DELETE /api/v1/clusters/{cluster_id}/acls/{id}");
  expect(pathname).toMatch(/\/acls\/acl_xw4mzn6yt2ba3k2jq7v5$/);
  await user.click(screen.getByRole("button", { name: "Undo" }));
  await expect
    .poll(() => sentTo("POST /api/v1/clusters/{cluster_id}/acls:batch")[0]?.body)
    .toMatchObject({ items: [{ principal: PRINCIPAL, operation: "READ" }] });
});

test("a viewer adds and deletes no rule", async () => {
  actAs("viewer");
  visit(ACLS);
  const remove = await screen.findByRole("button", { name: /^Delete: / });
  expect(remove).toHaveAttribute("aria-disabled", "true");
  expect(remove).toHaveAccessibleDescription(/yours is viewer/);
  expect(screen.getByRole("button", { name: "Add ACLs" })).toHaveAttribute("aria-disabled", "true");
});
