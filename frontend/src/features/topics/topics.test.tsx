import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { ConfigDetail } from "@/lib/api/types";
import { change, empty, fieldError, onlySentTo, refuse, sentTo } from "@/testing/server";
import {
  actAs,
  choose,
  CLUSTER,
  dialog,
  firstRow,
  loadedTable,
  rowsOf,
  visit,
} from "@/testing/visit";

const TOPICS = `${CLUSTER}/topics`;
const TOPIC = `${TOPICS}/payments`;
const LIST = "GET /api/v1/clusters/{cluster_id}/topics";
const ONE = "GET /api/v1/clusters/{cluster_id}/topics/{name}";
const CREATE = "POST /api/v1/clusters/{cluster_id}/topics";
const UPDATE = "PATCH /api/v1/clusters/{cluster_id}/topics/{name}";
const DELETE = "DELETE /api/v1/clusters/{cluster_id}/topics/{name}";
const RECORDS = "POST /api/v1/clusters/{cluster_id}/topics/{name}:delete-records";
const SKIP = "POST /api/v1/clusters/{cluster_id}/topics/{name}:skip-damaged";
const PARTITIONS = "GET /api/v1/clusters/{cluster_id}/topics/{name}/partitions";
const DELETED = "GET /api/v1/clusters/{cluster_id}/deleted-topics";
const ORPHANED = "GET /api/v1/clusters/{cluster_id}/orphaned-topics";

const RETENTION: ConfigDetail = {
  name: "retention.ms",
  value: "604800000",
  default: "86400000",
  source: "DYNAMIC_TOPIC_CONFIG",
  is_default: false,
  type: "LONG",
  documentation: "How long a record is kept at least.",
};
const CLEANUP: ConfigDetail = {
  name: "cleanup.policy",
  value: "delete",
  default: "delete",
  source: "DEFAULT_CONFIG",
  is_default: true,
  type: "LIST",
  documentation: "What happens to old records: `delete` or `compact`.",
};

function withConfigs(): void {
  change(ONE, (topic) => Object.assign(topic, { config_details: [RETENTION, CLEANUP] }));
}

test("topics are listed with what is kept of them", async () => {
  visit(TOPICS);
  expect(await firstRow("Topics")).toEqual(["payments", "6", "7 d", "delete"]);
});

test("many topics are found by name and sorted by any column", async () => {
  change(LIST, (page) => {
    const [first] = page.items;
    if (!first) throw new Error("the example has no topic");
    page.items = Array.from({ length: 9 }, (_, number) => ({
      ...first,
      name: `topic-${String(number)}`,
      partitions: 9 - number,
    }));
  });
  const { user } = visit(TOPICS);
  const table = within(await loadedTable("Topics"));
  await user.click(table.getByRole("button", { name: /^Partitions/ }));
  expect((await firstRow("Topics"))[0]).toBe("topic-8");
  await user.click(table.getByRole("button", { name: /^Partitions/ }));
  expect((await firstRow("Topics"))[0]).toBe("topic-0");
  await user.type(screen.getByLabelText("Find a topic"), "-3");
  expect((await rowsOf("Topics")).map(([name]) => name)).toEqual(["topic-3"]);
});

test("without a topic the same call by REST is shown, and no list of deleted ones", async () => {
  empty(LIST, DELETED, ORPHANED);
  visit(TOPICS);
  expect(await screen.findByText("No topic yet")).toBeVisible();
  expect(screen.queryByText("Deleted topics")).toBeNull();
  expect(screen.queryByText("Orphaned topics on storage")).toBeNull();
});

test("a list that is refused shows the problem's text", async () => {
  refuse(LIST, { status: 503, code: "no_cell", detail: "No cell has taken the cluster yet." });
  visit(TOPICS);
  expect(await screen.findByText(/No cell has taken the cluster yet/)).toBeVisible();
});

test("a new topic is made of what was chosen, and its page opens", async () => {
  const { user, address } = visit(`${TOPICS}?panel=new`);
  const panel = await dialog("New topic");
  const name = panel.getByRole("textbox", { name: "Name" });
  await user.type(name, "a/b{Enter}");
  expect(name).toBeInvalid();
  expect(sentTo(CREATE)).toEqual([]);
  await user.clear(name);
  await user.type(name, "payments");
  await choose(user, panel, "Retention", "1 day");
  await choose(user, panel, "Cleanup", /^Compact: /);
  await user.click(panel.getByRole("button", { name: "Create topic" }));
  await expect.poll(address).toBe(TOPIC);
  expect(onlySentTo(CREATE).body).toEqual({
    name: "payments",
    partitions: 3,
    configs: { "retention.ms": "86400000", "cleanup.policy": "compact" },
  });
});

test("a name that is taken is refused at its field", async () => {
  const errors = [fieldError("/name", "The topic exists.")];
  refuse(CREATE, { status: 409, code: "name_taken", detail: "The topic exists.", errors });
  const { user } = visit(`${TOPICS}?panel=new`);
  const panel = await dialog("New topic");
  const name = panel.getByRole("textbox", { name: "Name" });
  await user.type(name, "payments{Enter}");
  expect(await panel.findByRole("alert")).toHaveTextContent("Choose another name.");
  expect(name).toHaveAccessibleDescription(/The topic exists/);
});

test("a config is edited in place, and only that one is sent", async () => {
  withConfigs();
  const { user } = visit(`${TOPIC}/configuration`);
  await user.click(await screen.findByRole("button", { name: "Edit retention.ms" }));
  const value = screen.getByRole("textbox", { name: "Value of retention.ms" });
  await user.clear(value);
  await user.type(value, "soon");
  expect(screen.getByRole("button", { name: "Save" })).toBeDisabled();
  await user.clear(value);
  await user.type(value, "3600000{Enter}");
  expect(await screen.findByText("retention.ms is changed")).toBeVisible();
  expect(onlySentTo(UPDATE).body).toEqual({ configs: { "retention.ms": "3600000" } });
});

test("a config that the topic sets goes back to its default", async () => {
  withConfigs();
  const { user } = visit(`${TOPIC}/configuration`);
  await user.click(await screen.findByRole("switch", { name: "Only what this topic sets" }));
  const list = within(screen.getByRole("list", { name: "Configs" }));
  expect(list.getAllByRole("listitem")).toHaveLength(1);
  await user.click(list.getByRole("button", { name: "Edit retention.ms" }));
  await user.click(list.getByRole("button", { name: "Back to the default" }));
  await expect.poll(() => sentTo(UPDATE)[0]?.body).toEqual({ configs: { "retention.ms": null } });
});

test("configs are found by what they mean", async () => {
  withConfigs();
  const { user } = visit(`${TOPIC}/configuration`);
  await user.type(await screen.findByLabelText("Find a config"), "old records");
  expect(screen.getByText("cleanup.policy")).toBeVisible();
  expect(screen.queryByText("retention.ms")).toBeNull();
  await user.type(screen.getByLabelText("Find a config"), " of nobody");
  expect(screen.getByText("No config matches.")).toBeVisible();
});

test("partitions are added, never taken away", async () => {
  const { user } = visit(`${TOPIC}/partitions?panel=add`);
  const panel = await dialog("Add partitions");
  const count = panel.getByRole("textbox", { name: "Partitions in all" });
  await user.clear(count);
  expect(panel.getByRole("button", { name: "Add partitions" })).toBeDisabled();
  await user.type(count, "12");
  await user.click(panel.getByRole("button", { name: "Add partitions" }));
  expect(await screen.findByText("payments has 12 partitions")).toBeVisible();
  const add = onlySentTo("POST /api/v1/clusters/{cluster_id}/topics/{name}/partitions");
  expect(add.body).toEqual({ count: 12 });
});

test("records are deleted after a look at what goes, and after the name was typed", async () => {
  const { user } = visit(`${TOPIC}/partitions?panel=delete-records`);
  const panel = await dialog("Delete records of payments");
  await user.type(panel.getByRole("textbox", { name: "Before the offset" }), "42");
  await user.click(panel.getByRole("button", { name: "Show what will be deleted" }));
  const goes = within(await panel.findByRole("table", { name: "What goes" }));
  expect(goes.getByText("2 to 41")).toBeVisible();
  expect(sentTo(RECORDS).map(({ query }) => query)).toEqual([
    { wake: "true", validate_only: "true" },
  ]);

  await user.click(panel.getByRole("button", { name: "Delete 40 records" }));
  const asked = await dialog("Delete the records");
  await user.type(asked.getByRole("textbox"), "payments{Enter}");
  expect(await screen.findByText("40 records deleted")).toBeVisible();
  const { query, body } = sentTo(RECORDS)[1] ?? {};
  expect(query).toEqual({ wake: "true", validate_only: "false" });
  expect(body).toEqual({ partitions: [{ partition: 0, before_offset: "42" }] });
});

test("a group that has not read all of it is named before records go", async () => {
  change("GET /api/v1/clusters/{cluster_id}/groups", ({ items: [group] }) => {
    const [partition] = group?.partitions ?? [];
    if (partition) partition.committed = "30";
  });
  const { user } = visit(`${TOPIC}/partitions?panel=delete-records`);
  const panel = await dialog("Delete records of payments");
  await user.click(panel.getByRole("button", { name: "Show what will be deleted" }));
  expect(await panel.findByText("billing would never see 12 records")).toBeVisible();
});

test("a partition is deleted up to its damaged batch after a look at what goes", async () => {
  change(PARTITIONS, ({ items: [partition] }) => {
    if (partition) partition.damaged_first_offset = "94";
  });
  change("GET /api/v1/clusters/{cluster_id}/groups", ({ items: [group] }) => {
    const [partition] = group?.partitions ?? [];
    if (partition) partition.committed = "90";
  });
  const { user } = visit(`${TOPIC}/partitions`);
  const name = "Delete partition 0 up to its damaged batch";
  await user.click(await screen.findByRole("button", { name }));
  const panel = await dialog("Delete up to a damaged batch of payments");
  expect(panel.getByText(/^The batch at offset 94 of partition 0/)).toBeVisible();
  expect(sentTo(SKIP)).toEqual([]);
  await user.click(panel.getByRole("button", { name: "Show what will be deleted" }));
  expect(
    await panel.findByText("Up to 54 good records before the batch are deleted with it."),
  ).toBeVisible();
  const goes = within(await panel.findByRole("table", { name: "What goes" }));
  expect(goes.getByText("40 to 95")).toBeVisible();
  expect(panel.getByText("billing would never see 6 records")).toBeVisible();

  change(SKIP, (batch) => (batch.skipped = true));
  await user.click(panel.getByRole("button", { name: "Delete 54 good records and the batch" }));
  const asked = await dialog("Delete up to the damaged batch");
  await user.type(asked.getByRole("textbox"), "payments{Enter}");
  expect(await screen.findByText("Partition 0 begins at 96")).toBeVisible();
  expect(sentTo(SKIP).map(({ body }) => body)).toEqual([
    { partition: 0, first_offset: "94", confirm: false },
    { partition: 0, first_offset: "94", confirm: true },
  ]);
});

test("a damaged batch that is gone by now is not deleted", async () => {
  refuse(SKIP, { status: 409, code: "not_damaged", detail: "The log begins at 96 by now." });
  const { user } = visit(`${TOPIC}/partitions?panel=skip-damaged-0-94`);
  const panel = await dialog("Delete up to a damaged batch of payments");
  await user.click(panel.getByRole("button", { name: "Show what will be deleted" }));
  expect(await panel.findByText("The effect could not be computed")).toBeVisible();
});

test("partitions without damage have no column of it", async () => {
  visit(`${TOPIC}/partitions`);
  const table = within(await loadedTable("Partitions"));
  expect(table.queryByText("Damaged batch")).toBeNull();
});

test("a topic is deleted only after its name was typed", async () => {
  const { user, address } = visit(TOPIC);
  await user.click(await screen.findByRole("button", { name: "Delete" }));
  const asked = await dialog("Delete the topic");
  await user.type(asked.getByRole("textbox"), "payment{Enter}");
  expect(sentTo(DELETE)).toEqual([]);
  await user.type(asked.getByRole("textbox"), "s{Enter}");
  await expect.poll(address).toBe(TOPICS);
  expect(await screen.findByText("payments is deleted")).toBeVisible();
});

test("a deleted topic comes back under another name", async () => {
  const { user } = visit(TOPICS);
  await user.click(await screen.findByRole("button", { name: "Restore payments" }));
  const panel = await dialog("Restore payments");
  await user.type(panel.getByRole("textbox", { name: "Name" }), "-old");
  await user.click(panel.getByRole("button", { name: "Restore the topic" }));
  expect(await screen.findByText("payments is restored")).toBeVisible();
  const undelete = "POST /api/v1/clusters/{cluster_id}/deleted-topics/{topic}:undelete";
  expect(onlySentTo(undelete).body).toEqual({ name: "payments-old" });
});

test("a deleted topic is purged only after its name was typed", async () => {
  const { user } = visit(TOPICS);
  await user.click(await screen.findByRole("button", { name: "Purge payments" }));
  const asked = await dialog("Purge the topic");
  expect(asked.getByRole("button", { name: "Purge the topic" })).toBeDisabled();
  await user.type(asked.getByRole("textbox"), "payments{Enter}");
  expect(await screen.findByText("payments is gone for good")).toBeVisible();
});

test("a topic whose name nobody knows is attached under a name that is typed", async () => {
  change(ORPHANED, ({ items: [topic] }) => {
    if (topic) topic.name = null;
  });
  const { user } = visit(TOPICS);
  await user.click(await screen.findByRole("button", { name: "Attach J8Yd1vPzQ0a0m4mI5l5r2g" }));
  const panel = await dialog("Attach the topic");
  await user.type(panel.getByRole("textbox", { name: "Name" }), "found{Enter}");
  expect(await screen.findByText("payments is attached")).toBeVisible();
  const attach = "POST /api/v1/clusters/{cluster_id}/orphaned-topics/{topic}:attach";
  expect(onlySentTo(attach).body).toEqual({ name: "found" });
});

test("a viewer makes, restores, edits and deletes nothing", async () => {
  actAs("viewer");
  withConfigs();
  const { user } = visit(TOPICS);
  for (const name of ["New topic", "Restore payments", "Purge payments", "Attach payments"]) {
    const button = await screen.findByRole("button", { name });
    expect(button).toHaveAccessibleDescription(/yours is viewer/);
    await user.click(button);
  }
  expect(screen.queryByRole("dialog")).toBeNull();
});
