import { Link } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { EntryCard } from "@/features/session/components/EntryCard";
import { ForgottenForm } from "@/features/session/components/ForgottenForm";

/** The page that sends a mail to people who forgot their password. */
export function ForgottenPage(): ReactElement {
  return (
    <EntryCard
      title="Forgotten password"
      lead="A mail brings you a link to set another one."
      foot={<Link to="/signin">Back to the sign-in</Link>}
    >
      <ForgottenForm />
    </EntryCard>
  );
}
