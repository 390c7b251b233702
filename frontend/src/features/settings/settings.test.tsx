import { screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { visit } from "@/testing/visit";

test("a theme is chosen and kept in this browser", async () => {
  const { user } = visit("/settings");
  await user.click(await screen.findByRole("radio", { name: "Dark" }));
  expect(document.documentElement).toHaveAttribute("data-mantine-color-scheme", "dark");
  expect(localStorage.getItem("mantine-color-scheme-value")).toBe("dark");
  await user.click(screen.getByRole("radio", { name: "Light" }));
  expect(document.documentElement).toHaveAttribute("data-mantine-color-scheme", "light");
});

test("times are shown in UTC or in this browser's zone, as is chosen", async () => {
  const zone = vi.spyOn(Date.prototype, "getTimezoneOffset").mockReturnValue(-60);
  const { user } = visit("/settings");
  await user.click(await screen.findByRole("radio", { name: "UTC" }));
  expect(localStorage.getItem("freshet.zone")).toBe("utc");
  const button = screen.getByRole("button", { name: /^Times in UTC; change to this browser's/ });
  await user.click(button);
  expect(screen.getByRole("button", { name: /^Times in UTC\+01:00; change to UTC/ })).toBeVisible();
  expect(localStorage.getItem("freshet.zone")).toBe("local");
  expect(screen.getByRole("radio", { name: "UTC" })).not.toBeChecked();
  zone.mockRestore();
});
