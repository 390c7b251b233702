import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { visit } from "@/testing/visit";

test("a theme is chosen and kept in this browser", async () => {
  const { user } = visit("/settings");
  await user.click(await screen.findByRole("radio", { name: "Dark" }));
  expect(document.documentElement).toHaveAttribute("data-mantine-color-scheme", "dark");
  expect(localStorage.getItem("mantine-color-scheme-value")).toBe("dark");
  await user.click(screen.getByRole("radio", { name: "Light" }));
  expect(document.documentElement).toHaveAttribute("data-mantine-color-scheme", "light");
});
