import { Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { type ReactElement, useMemo } from "react";
import { CopyText } from "@/components/CopyText";
import { MutationForm } from "@/components/MutationForm";
import type { Enrolment } from "@/lib/api/types";
import { useConfirmApp } from "../api/safety";
import classes from "./EnrolApp.module.css";
import { RecoveryCodes } from "./RecoveryCodes";

interface Props {
  enrolment: Enrolment;
  onDone: () => void;
}

/**
 * Sets up an authenticator app: the app reads the secret, a code proves it. Then it shows the
 * recovery codes.
 */
export function EnrolApp({ enrolment, onDone }: Props): ReactElement {
  const confirm = useConfirmApp();
  const form = useForm({
    initialValues: { code: "" },
    validate: {
      code: (code) => (/^\d{6}$/.test(code.replace(/\s/g, "")) ? null : "Six digits"),
    },
  });
  const picture = useMemo(
    () => `data:image/svg+xml,${encodeURIComponent(enrolment.qr_svg)}`,
    [enrolment.qr_svg],
  );
  if (confirm.data) return <RecoveryCodes codes={confirm.data} onDone={onDone} />;
  return (
    <MutationForm
      form={form}
      mutation={confirm}
      input={({ code }) => ({ code: code.replace(/\s/g, "") })}
      onCancel={onDone}
      action="Turn it on"
      failure="It is not on yet"
    >
      <Stack gap={6}>
        <Text size="sm">
          Scan this with an authenticator app, such as Aegis, 1Password or Google Authenticator.
        </Text>
        <img className={classes.qr} src={picture} alt="QR code of the secret" />
        <Text size="sm">
          Or open it <a href={enrolment.otpauth_uri}>on this device</a>, or type the secret in:
        </Text>
        <CopyText value={enrolment.secret} what="the secret" />
      </Stack>
      <TextInput
        label="Code"
        description="The six digits that the app shows now"
        inputMode="numeric"
        autoComplete="one-time-code"
        spellCheck={false}
        {...form.getInputProps("code")}
      />
    </MutationForm>
  );
}
