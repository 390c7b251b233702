import { expect, test } from "vitest";
import { roleLabel, rolesUpTo } from "./roles";

const values = (own: Parameters<typeof rolesUpTo>[0]) => rolesUpTo(own).map(({ value }) => value);

test("nobody gives a role above their own", () => {
  expect(values("owner")).toContain("owner");
  expect(values("admin")).not.toContain("owner");
  expect(values("admin")).toContain("billing");
  expect(values("developer")).toEqual(["developer", "reader", "viewer", "member"]);
  expect(values(undefined)).toEqual(["member"]);
});

test("roles have names", () => {
  expect(roleLabel("member")).toBe("Member");
});
