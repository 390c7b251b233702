import { describe, expect, it } from "vitest";
import { addressLines, countries, plainVatId, vatIdComplaint } from "./countries";

describe("countries", () => {
  it("are 249, each with a name of its own", () => {
    const all = countries();
    expect(all).toHaveLength(249);
    expect(new Set(all.map(({ label }) => label)).size).toBe(249);
    expect(all.every(({ value, label }) => /^[A-Z]{2}$/.test(value) && label !== value)).toBe(true);
  });
});

describe("VAT ids", () => {
  it("are kept without what people put between", () => {
    expect(plainVatId(" de 987.654-328 ")).toBe("DE987654328");
  });

  it("begin with a country, or are left out", () => {
    expect(vatIdComplaint("")).toBeNull();
    expect(vatIdComplaint("DE 987654328")).toBeNull();
    expect(vatIdComplaint("987654321")).not.toBeNull();
    expect(vatIdComplaint("DE1")).not.toBeNull();
  });
});

describe("addresses", () => {
  it("are lines without the empty ones", () => {
    expect(addressLines(" Lindenallee 3 \n\n10115 Berlin\n")).toEqual([
      "Lindenallee 3",
      "10115 Berlin",
    ]);
  });
});
