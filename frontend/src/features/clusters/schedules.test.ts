import { describe, expect, it } from "vitest";
import { officeHours, scheduleProblem, scheduleWords, zones } from "./schedules";

const hours = { ...officeHours(), time_zone: "Europe/Zurich" };

describe("scheduleWords", () => {
  it("joins days that follow each other", () => {
    expect(scheduleWords(hours)).toBe("Mon–Fri 07:00–19:00 Europe/Zurich");
    expect(scheduleWords({ ...hours, days: ["sun", "mon", "tue", "thu"] })).toBe(
      "Mon, Tue, Thu, Sun 07:00–19:00 Europe/Zurich",
    );
    expect(
      scheduleWords({ ...hours, days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] }),
    ).toMatch(/^Daily /);
  });
});

describe("scheduleProblem", () => {
  it("names the fields that are wrong", () => {
    expect(scheduleProblem(hours)).toBeNull();
    expect(scheduleProblem({ ...hours, end: "24:00" })).toBeNull();
    const wrong = scheduleProblem({ ...hours, days: [], start: "24:00", end: "7" });
    expect(Object.keys(wrong ?? {}).sort()).toEqual(["days", "end", "start"]);
  });
});

describe("zones", () => {
  it("has those that the browser does not know", () => {
    expect(zones(["Mars/Base"])).toContain("Mars/Base");
    expect(zones([])).toContain("UTC");
  });
});
