import { Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ReactElement, ReactNode } from "react";
import { MutationForm } from "@/components/MutationForm";
import { useVerifyMail } from "../api/session";
import { enteredPassword, PasswordField } from "./ProofFields";

interface Props {
  /** The token in the mail's link. */
  token: string;
  /** What is shown once the address is verified. */
  done: ReactNode;
}

/** Asks who opened a proof's link without a session for the password of the sign-up. */
export function ProofForm({ token, done }: Props): ReactElement {
  const verify = useVerifyMail();
  const form = useForm({
    initialValues: { password: "" },
    validate: { password: enteredPassword },
  });
  if (verify.isSuccess) return <>{done}</>;
  return (
    <MutationForm
      form={form}
      mutation={verify}
      input={({ password }) => ({ token, password })}
      action="Verify the address"
      failure="The address was not verified"
    >
      <Text size="sm">
        Enter the password that you chose at sign-up, so that we know it was you.
      </Text>
      <PasswordField autoFocus {...form.getInputProps("password")} />
    </MutationForm>
  );
}
