import type { ReactElement } from "react";
import { Tile, Tiles } from "@/components/Tile";
import type { Account } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";

/** What is owed, the part of it that is overdue, and the credit that pays the next invoice. */
export function BalanceTiles({ account }: { account: Account | undefined }): ReactElement {
  const money = (minor: number | null | undefined): string | undefined =>
    account && typeof minor === "number" ? formatMoney(minor, account.currency) : undefined;
  return (
    <Tiles>
      <Tile label="To be paid" value={money(account?.open_minor)} note="of all issued invoices" />
      <Tile
        label="Unpaid"
        value={money(account?.unpaid_minor)}
        note="was to be paid already, and was not"
      />
      <Tile label="Credit" value={money(account?.credit_minor)} note="pays the next invoice" />
    </Tiles>
  );
}
