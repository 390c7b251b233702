import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { api } from "@/lib/api/client";
import { exampleOf } from "./contract";
import { answer, onlySentTo, refuse, sentTo, stall, takeComplaints } from "./server";
import { visit } from "./visit";

test("an answer that breaks the contract is refused where it is given", () => {
  const page = exampleOf("GET /api/v1/alerts");
  const wrong = { ...page, next_cursor: 7 as unknown as string };
  expect(() => {
    answer("GET /api/v1/alerts", wrong);
  }).toThrow("a mocked answer breaks the contract");
  expect(() => {
    refuse("GET /api/v1/prices", { status: 418, detail: "A teapot." });
  }).toThrow("answers no 418");
});

test("an answer that breaks the contract once it is made fails the test", async () => {
  answer("GET /api/v1/alerts", () => ({ items: [{}] }) as never);
  await expect(api.GET("/api/v1/alerts")).rejects.toThrow("could not reach");
  expect(takeComplaints()).toEqual([expect.stringContaining("breaks the contract")]);
});

test("a request that breaks the contract fails the test", async () => {
  const body = { name: 7 } as never;
  await expect(api.POST("/api/v1/projects", { body })).rejects.toThrow("could not reach");
  expect(takeComplaints()).toEqual([expect.stringContaining("a request breaks the contract")]);
  expect(sentTo("POST /api/v1/projects")).toEqual([]);
});

test("what was sent is kept with its query and its headers", async () => {
  await api.GET("/api/v1/alerts", { params: { query: { limit: 7 } } });
  expect(onlySentTo("GET /api/v1/alerts").query).toEqual({ limit: "7" });
  expect(() => onlySentTo("GET /api/v1/prices")).toThrow("was asked 0 times");
});

test("while an answer is waited for, a table keeps its shape", async () => {
  stall("GET /api/v1/alerts");
  visit("/alerts");
  const table = await screen.findByRole("table", { name: "Alerts", busy: true });
  expect(table.querySelectorAll("tbody tr")).toHaveLength(4);
});
