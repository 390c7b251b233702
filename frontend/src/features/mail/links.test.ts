import { expect, test } from "vitest";
import { linkify } from "./links";

test("links are found without the dot that ends a sentence", () => {
  expect(linkify("Open http://a.b/verify?token=x.\nThanks")).toEqual([
    { text: "Open " },
    { text: "http://a.b/verify?token=x", href: "http://a.b/verify?token=x" },
    { text: ".\nThanks" },
  ]);
});

test("what is no web address is no link", () => {
  expect(linkify("javascript:alert(1)")).toEqual([{ text: "javascript:alert(1)" }]);
});
