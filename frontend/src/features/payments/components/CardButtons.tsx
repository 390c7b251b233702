import { Group } from "@mantine/core";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { GuardedButton } from "@/components/GuardedButton";
import { useRefusal } from "@/lib/permissions";
import { useGiveCard, useManageCard } from "../api/payments";

/** A button that leads to a page of Stripe on which a card is given. */
export function GiveCard({ label = "Add a card" }: { label?: string }): ReactElement {
  const give = useGiveCard();
  const refused = useRefusal("billing");
  return (
    <>
      <GuardedButton
        refused={refused}
        loading={give.isPending}
        onClick={() => {
          give.mutate();
        }}
      >
        {label}
      </GuardedButton>
      {give.error && <ErrorPanel error={give.error} what="The page for the card did not open" />}
    </>
  );
}

/** Buttons that lead to Stripe's pages: to give another card, and to see or remove this one. */
export function CardButtons({ canManage }: { canManage: boolean }): ReactElement {
  const manage = useManageCard();
  const refused = useRefusal("billing");
  return (
    <>
      <Group gap="xs">
        <GiveCard label="Use another card" />
        {canManage && (
          <GuardedButton
            variant="default"
            refused={refused}
            loading={manage.isPending}
            onClick={() => {
              manage.mutate();
            }}
          >
            See or remove it at Stripe
          </GuardedButton>
        )}
      </Group>
      {manage.error && (
        <ErrorPanel error={manage.error} what="The page for the card did not open" />
      )}
    </>
  );
}
