import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { EntryCard } from "@/features/session/components/EntryCard";
import { SignInForm } from "@/features/session/components/SignInForm";
import { useLinkToken } from "./useLinkToken";

export function SignInPage(): ReactElement {
  const navigate = useNavigate();
  const { next } = useSearch({ from: "/signin" });
  const link = useLinkToken();
  return (
    <EntryCard
      title="Sign in"
      lead="To the console of your organization."
      foot={
        <>
          <Link to="/forgotten">Forgotten your password?</Link>
          <br />
          No account yet? <Link to="/signup">Sign up</Link>
        </>
      }
    >
      <SignInForm link={link} onDone={() => void navigate({ href: next ?? "/" })} />
    </EntryCard>
  );
}
