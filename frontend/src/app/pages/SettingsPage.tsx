import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { CopyText } from "@/components/CopyText";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import { sessionQuery } from "@/features/session/api/session";
import { Verification } from "@/features/session/components/Verification";
import { ThemeChoice } from "@/features/settings/components/ThemeChoice";
import classes from "./SettingsPage.module.css";

export function SettingsPage(): ReactElement {
  const { data: session } = useQuery(sessionQuery);
  const { user, organization } = session ?? {};
  return (
    <>
      <PageHead title="Settings" />
      <Section title="Theme" lead="Kept in this browser.">
        <ThemeChoice />
      </Section>
      <Section title="Organization">
        <dl className={classes.facts}>
          <dt>Name</dt>
          <dd>{organization?.name}</dd>
          <dt>Id</dt>
          <dd>{organization && <CopyText value={organization.id} what="the id" />}</dd>
        </dl>
      </Section>
      <Section title="You">
        <dl className={classes.facts}>
          <dt>Mail address</dt>
          <dd>{user?.email}</dd>
          <dt>Verified</dt>
          <dd>{user && <Verification user={user} />}</dd>
        </dl>
      </Section>
    </>
  );
}
