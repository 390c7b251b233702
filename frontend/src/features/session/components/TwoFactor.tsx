import { Button, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactElement, useState } from "react";
import { GuardedButton } from "@/components/GuardedButton";
import { SidePanel } from "@/components/SidePanel";
import { StateMark } from "@/components/StateMark";
import { keys } from "@/lib/api/keys";
import { useEnrol, useRecoveryCodes, useRemoveApp } from "../api/safety";
import { CodeForm } from "./CodeForm";
import { EnrolApp } from "./EnrolApp";
import { PasswordAgain, PasswordAndCode } from "./PasswordAgain";
import { RecoveryCodes } from "./RecoveryCodes";

interface Props {
  enabled: boolean;
  /** Whether the person's address is verified. Without that nobody gets a second factor. */
  verified: boolean;
}

type Step = "enrol" | "codes" | "remove";

/**
 * The second factor: whether it is on, and buttons to turn it on and off and to renew its codes.
 */
export function TwoFactor({ enabled, verified }: Props): ReactElement {
  const client = useQueryClient();
  const enrol = useEnrol();
  const [step, setStep] = useState<Step>();
  const close = (): void => {
    setStep(undefined);
    enrol.reset();
    // The session is read only now, so that the codes stay visible until the person is done.
    void client.invalidateQueries({ queryKey: keys.session });
  };
  return (
    <Stack gap="sm" align="flex-start">
      <StateMark tone={enabled ? "running" : "quiet"}>{enabled ? "On" : "Off"}</StateMark>
      <Text size="sm" c="dimmed" maw="68ch">
        {enabled
          ? "Signing in asks for a code of your authenticator app beside the password."
          : "With it a stolen password is not enough: signing in asks for a code of an app too."}
      </Text>
      {enabled ? (
        <Group gap="xs">
          <Button
            variant="default"
            onClick={() => {
              setStep("codes");
            }}
          >
            New recovery codes
          </Button>
          <Button
            variant="default"
            onClick={() => {
              setStep("remove");
            }}
          >
            Turn off
          </Button>
        </Group>
      ) : (
        <GuardedButton
          refused={verified ? undefined : "Confirm your address first: open the mail's link"}
          onClick={() => {
            setStep("enrol");
          }}
        >
          Set up an authenticator app
        </GuardedButton>
      )}
      <SidePanel opened={step === "enrol"} onClose={close} title="Set up an authenticator app">
        {enrol.data ? (
          <EnrolApp enrolment={enrol.data} onDone={close} />
        ) : (
          <PasswordAgain mutation={enrol} onCancel={close} failure="The app was not set up">
            Enter your password again, so that only you can do this.
          </PasswordAgain>
        )}
      </SidePanel>
      <SidePanel opened={step === "codes"} onClose={close} title="New recovery codes">
        <RenewCodes onDone={close} />
      </SidePanel>
      <SidePanel opened={step === "remove"} onClose={close} title="Turn two-factor sign-in off">
        <TurnOff onDone={close} />
      </SidePanel>
    </Stack>
  );
}

function RenewCodes({ onDone }: { onDone: () => void }): ReactElement {
  const renew = useRecoveryCodes();
  if (renew.data) return <RecoveryCodes codes={renew.data} onDone={onDone} />;
  return (
    <CodeForm
      mutation={renew}
      onCancel={onDone}
      action="Make new codes"
      failure="No codes were made"
    >
      The codes that you have now stop working.
    </CodeForm>
  );
}

function TurnOff({ onDone }: { onDone: () => void }): ReactElement {
  const remove = useRemoveApp();
  return (
    <PasswordAndCode
      mutation={remove}
      onCancel={onDone}
      onDone={() => {
        notifications.show({ message: "Signing in asks for the password alone" });
        onDone();
      }}
      action="Turn it off"
      failure="It is still on"
    >
      Signing in will ask for the password alone. The app&apos;s entry and the recovery codes lose
      their effect.
    </PasswordAndCode>
  );
}
