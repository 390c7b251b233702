import { afterEach, expect, test } from "vitest";
import { noteServerTime, serverTime } from "./serverTime";

afterEach(() => {
  noteServerTime(new Date().toUTCString());
});

const offMs = (): number => serverTime().getTime() - Date.now();

test("a machine whose clock is off shows the service's time", () => {
  noteServerTime(new Date(Date.now() + 60_000).toUTCString());
  expect(Math.abs(offMs() - 60_000)).toBeLessThan(2_000);
  noteServerTime(new Date(Date.now() - 3_600_000).toUTCString());
  expect(Math.abs(offMs() + 3_600_000)).toBeLessThan(2_000);
});

test("clocks that agree are left alone, and so is an answer without a time", () => {
  noteServerTime(new Date().toUTCString());
  noteServerTime(null);
  noteServerTime("soon");
  expect(Math.abs(offMs())).toBeLessThan(50);
});
