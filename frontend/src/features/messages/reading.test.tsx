import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { exampleOf } from "@/testing/contract";
import { answer, refuse, sentTo } from "@/testing/server";
import { actAs, CLUSTER, visit } from "@/testing/visit";

const TOPIC = `${CLUSTER}/topics/payments`;
const READ = "GET /api/v1/clusters/{cluster_id}/topics/{name}/messages";

test.each(["viewer", "billing"] as const)(
  "the role %s sees why no records are shown",
  async (role) => {
    actAs(role);
    refuse(READ, {
      status: 403,
      code: "permission_denied",
      detail: "It was asked for all the same.",
    });
    visit(TOPIC);
    expect(
      await screen.findByText(/readers may read records; yours is .* Ask an owner/),
    ).toBeInTheDocument();
    expect(screen.queryByRole("button", { name: "Produce" })).toBeNull();
    expect(screen.queryByRole("radio", { name: "Live" })).toBeNull();
    expect(sentTo(READ)).toEqual([]);
    expect(screen.queryByText("It was asked for all the same.")).toBeNull();
    // The other tabs of the topic stay.
    expect(screen.getByRole("link", { name: "Partitions" })).toBeInTheDocument();
  },
);

test("a role in the cluster's project shows records to a viewer", async () => {
  actAs("viewer");
  const projects = exampleOf("GET /api/v1/projects");
  const items = projects.items.map((project) => ({
    ...project,
    permissions: ["read" as const, "data.read" as const],
  }));
  answer("GET /api/v1/projects", { ...projects, items });
  visit(TOPIC);
  expect(await screen.findByRole("grid", { name: "Messages" })).toBeInTheDocument();
});
