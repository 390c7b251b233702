import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { EntryCard } from "@/features/session/components/EntryCard";
import { SignUpForm } from "@/features/session/components/SignUpForm";

export function SignUpPage(): ReactElement {
  const navigate = useNavigate();
  return (
    <EntryCard
      title="Sign up"
      lead="You get a Kafka cluster with a sample topic, ready for your first message."
      foot={
        <>
          Have an account? <Link to="/signin">Sign in</Link>
        </>
      }
    >
      <SignUpForm onDone={() => void navigate({ to: "/" })} />
    </EntryCard>
  );
}
