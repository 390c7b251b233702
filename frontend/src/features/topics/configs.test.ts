import { expect, test } from "vitest";
import { configComplaint, readableConfig, topicNameComplaint } from "./configs";

test.each([
  ["retention.ms", "604800000", "7 d"],
  ["retention.ms", "-1", "no limit"],
  ["segment.bytes", "1073741824", "1.0 GiB"],
  ["cleanup.policy", "delete", ""],
  ["segment.ms", "9223372036854775807", "practically no limit"],
])("%s = %s reads as '%s'", (name, value, words) => {
  expect(readableConfig(name, value)).toBe(words);
});

test.each([
  ["retention.ms", "soon", "604800000"],
  ["retention.ms", "1.5", "604800000"],
  ["retention.ms", "-2", "604800000"],
  ["min.cleanable.dirty.ratio", "1.2", "0.5"],
  ["cleanup.policy", "keep", "delete"],
  ["unclean.leader.election.enable", "yes", "false"],
])("%s = %s is refused", (name, value, fallback) => {
  expect(configComplaint(name, value, fallback)).not.toBeNull();
});

test.each([
  ["retention.ms", "-1", "604800000"],
  ["min.cleanable.dirty.ratio", "0.25", "0.5"],
  ["cleanup.policy", "compact,delete", "delete"],
])("%s = %s is fine", (name, value, fallback) => {
  expect(configComplaint(name, value, fallback)).toBeNull();
});

test("topic names follow Kafka's rule", () => {
  expect(topicNameComplaint("orders.eu_1-a")).toBeNull();
  for (const name of ["", ".", "..", "a b", "ä", "x".repeat(250)]) {
    expect(topicNameComplaint(name)).not.toBeNull();
  }
});
