import { expect, test } from "vitest";
import { pathOf } from "./client";

test.each([
  ["plain", "plain"],
  ["a/b", "a%2Fb"],
  ["a%2Fb", "a%252Fb"],
  ["//", "%2F%2F"],
  ["a?b#c", "a%3Fb%23c"],
  ["é b", "%C3%A9%20b"],
  ["$&", "%24%26"],
  ["..", "~.."],
  [".", "~."],
  ["~..", "~~.."],
  ["~", "~"],
  ["...", "..."],
  ["../..", "..%2F.."],
])("the name %j is one part of a path", (name, part) => {
  const path = pathOf("/clusters/{cluster_id}/groups/{group}/reset-offsets", {
    cluster_id: "cl_a",
    group: name,
  });
  expect(path).toBe(`/clusters/cl_a/groups/${part}/reset-offsets`);
  // A browser does not change such a path.
  expect(new URL(path, "http://console.example").pathname).toBe(path);
});
