import { Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { TrafficNote } from "@/features/clusters/components/TrafficLimited";
import { trafficEffect } from "@/features/clusters/traffic";
import { organizationQuery } from "@/features/organization/api/organization";
import { accountQuery } from "@/features/payments/api/payments";
import { SLOW } from "@/lib/api/polling";

/**
 * Says that all clusters refuse traffic or slow it down, why, and where that is lifted. It is empty
 * where nothing limits traffic, and where the note of unpaid invoices above every page says it.
 */
export function TrafficOfAll(): ReactElement | null {
  const { data: organization } = useQuery({ ...organizationQuery, ...SLOW });
  const { data: account } = useQuery(accountQuery);
  const limit = organization?.traffic_limit;
  if (!limit || !account || !["paid", "unpaid"].includes(account.stage)) return null;
  return (
    <TrafficNote
      reason={limit.reason}
      effect={trafficEffect(limit.kind)}
      action={
        <Group gap="md">
          <Link to="/usage/costs">Cost</Link>
          <Link to="/usage/budgets">Budgets</Link>
          <Link to="/billing">Payment</Link>
        </Group>
      }
    />
  );
}
