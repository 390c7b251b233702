import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { fieldError, onlySentTo, refuse, sentTo } from "@/testing/server";
import { actAs, choose, visit } from "@/testing/visit";

const CHANGE = "PATCH /api/v1/billing-details";

test("details are shown as they are kept, with the country by its name", async () => {
  visit("/billing-details");
  expect(await screen.findByRole("textbox", { name: "Legal name" })).toHaveValue(
    "Acme Payments GmbH",
  );
  expect(screen.getByRole("textbox", { name: "Address" })).toHaveValue(
    "Lindenallee 3\n10115 Berlin",
  );
  expect(screen.getByRole("combobox", { name: "Country" })).toHaveValue("Germany");
});

test("only a changed form is saved, and as it was typed", async () => {
  const { user } = visit("/billing-details");
  const address = await screen.findByRole("textbox", { name: "Address" });
  const save = screen.getByRole("button", { name: "Save" });
  expect(save).toBeDisabled();
  await user.clear(address);
  await user.type(address, " Rue 1 {Enter}{Enter}75001 Paris");
  await choose(user, screen, "Country", "France");
  const vatId = screen.getByRole("textbox", { name: "VAT id" });
  await user.clear(vatId);
  await user.type(vatId, "fr 40 303 265 045");
  await user.click(save);
  expect(await screen.findByText("The billing details are saved")).toBeVisible();
  expect(onlySentTo(CHANGE).body).toEqual({
    legal_name: "Acme Payments GmbH",
    address: ["Rue 1", "75001 Paris"],
    country: "FR",
    vat_id: "FR40303265045",
    email: "invoices@acme.example",
  });
});

test("what is no mail address is not sent", async () => {
  const { user } = visit("/billing-details");
  const email = await screen.findByRole("textbox", { name: "Mail address for invoices" });
  await user.clear(email);
  await user.type(email, "nobody{Enter}");
  expect(email).toBeInvalid();
  expect(sentTo(CHANGE)).toEqual([]);
});

test("an error of the service is shown at its field", async () => {
  refuse(CHANGE, {
    status: 422,
    detail: "The body is not valid.",
    errors: [fieldError("/vat_id", "This number is not known to VIES.")],
  });
  const { user } = visit("/billing-details");
  await user.type(await screen.findByRole("textbox", { name: "Legal name" }), " & Co.{Enter}");
  expect(await screen.findByRole("alert")).toHaveTextContent("The billing details were not saved");
  const vatId = screen.getByRole("textbox", { name: "VAT id" });
  expect(vatId).toHaveAccessibleDescription(/not known to VIES/);
});

test("a viewer reads who may see the details", async () => {
  actAs("viewer");
  refuse("GET /api/v1/billing-details", { status: 403, detail: "Your role is viewer." });
  visit("/billing-details");
  expect(await screen.findByText(/Owners, admins and billing may see/)).toBeVisible();
  expect(screen.queryByRole("button", { name: "Save" })).toBeNull();
});
