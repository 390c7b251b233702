import { Select, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifications } from "@mantine/notifications";
import { type ReactElement, useMemo } from "react";
import { MutationForm } from "@/components/MutationForm";
import type { BillingDetails } from "@/lib/api/types";
import { useUpdateBillingDetails } from "../api/billingDetails";
import { addressLines, countries, plainVatId, vatIdComplaint } from "../countries";

const LINES_MAX = 8;

interface Props {
  details: BillingDetails;
  /** The organization's name, which invoices use where there is no legal name. */
  organization: string;
}

/** The form of the billing details. An invoice keeps the address that it was issued with. */
export function BillingDetailsForm({ details, organization }: Props): ReactElement {
  const update = useUpdateBillingDetails();
  const known = useMemo(() => countries(), []);
  const form = useForm({
    initialValues: {
      legal_name: details.legal_name,
      address: details.address.join("\n"),
      country: details.country,
      vat_id: details.vat_id,
      email: details.email,
    },
    validate: {
      address: (text) =>
        addressLines(text).length > LINES_MAX ? `At most ${String(LINES_MAX)} lines` : null,
      vat_id: vatIdComplaint,
      email: (email) =>
        email.trim() === "" || /^\S+@\S+\.\S+$/.test(email.trim()) ? null : "A mail address",
    },
  });
  return (
    <MutationForm
      form={form}
      mutation={update}
      input={({ legal_name, address, country, vat_id, email }) => ({
        legal_name: legal_name.trim(),
        address: addressLines(address),
        country,
        vat_id: plainVatId(vat_id),
        email: email.trim(),
      })}
      onDone={() => {
        notifications.show({ message: "The billing details are saved" });
        form.resetDirty();
      }}
      action="Save"
      failure="The billing details were not saved"
      disabled={!form.isDirty()}
    >
      <TextInput
        label="Legal name"
        placeholder={organization}
        description="Of the company that is billed. Empty: the organization's name."
        autoComplete="organization"
        maxLength={200}
        {...form.getInputProps("legal_name")}
      />
      <Textarea
        label="Address"
        description="As on an envelope, without name and country"
        autosize
        minRows={3}
        maxRows={LINES_MAX}
        autoComplete="street-address"
        {...form.getInputProps("address")}
      />
      <Select
        label="Country"
        description="It decides which VAT is due"
        placeholder="Choose one"
        data={known}
        searchable
        clearable
        nothingFoundMessage="No such country"
        {...form.getInputProps("country")}
        value={form.values.country || null}
        onChange={(picked) => {
          form.setFieldValue("country", (picked ?? "") as typeof form.values.country);
        }}
      />
      <TextInput
        label="VAT id"
        description="With its country's prefix: DE987654328"
        autoComplete="off"
        spellCheck={false}
        {...form.getInputProps("vat_id")}
      />
      <TextInput
        label="Mail address for invoices"
        description="Empty: to the members who look after money"
        type="email"
        autoComplete="email"
        maxLength={254}
        {...form.getInputProps("email")}
      />
    </MutationForm>
  );
}
