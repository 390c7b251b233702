import type { ReactElement } from "react";
import { Moment } from "@/components/Moment";
import { Section } from "@/components/Section";
import type { Budget } from "@/lib/api/types";
import { formatMoney } from "@/lib/format/money";
import { eventWords } from "../words";
import classes from "./BudgetEvents.module.css";

/** The events of a budget, newest first, with the amount that was spent at each. */
export function BudgetEvents({ budget }: { budget: Budget }): ReactElement | null {
  const { events, currency } = budget;
  if (events.length === 0) return null;
  return (
    <Section title="What happened">
      <ul className={classes.events}>
        {events.map((event) => (
          <li key={event.id}>
            <span>
              {eventWords(event)}
              <span className={classes.spent}>
                {formatMoney(event.spent_minor, currency)} of{" "}
                {formatMoney(event.amount_minor, currency)} were spent
              </span>
            </span>
            <Moment at={event.created_at} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
