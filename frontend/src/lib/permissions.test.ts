import { describe, expect, it } from "vitest";
import { grants, refusalOf } from "./permissions";

describe("permissions of roles", () => {
  it("are those of the service", () => {
    expect(grants("owner", "own")).toBe(true);
    expect(grants("admin", "own")).toBe(false);
    expect(grants("admin", "manage")).toBe(true);
    expect(grants("developer", "write")).toBe(true);
    expect(grants("developer", "billing")).toBe(false);
    expect(grants("billing", "billing")).toBe(true);
    expect(grants("viewer", "write")).toBe(false);
    expect(grants("viewer", "data.read")).toBe(false);
    expect(grants("billing", "data.read")).toBe(false);
    expect(grants("reader", "data.read")).toBe(true);
    expect(grants("reader", "write")).toBe(false);
    expect(grants(undefined, "read")).toBe(false);
  });

  it("are refused with who may, and whom one is", () => {
    expect(refusalOf("owner", "billing")).toBeUndefined();
    expect(refusalOf("viewer", "billing")).toMatch(/^Owners, admins and billing may .* viewer/);
    expect(refusalOf("viewer", "data.read")).toMatch(/readers may read records; yours is viewer/);
    expect(refusalOf(undefined, "write")).toContain("you have none here");
  });
});
