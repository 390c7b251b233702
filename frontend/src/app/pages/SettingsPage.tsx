import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { CopyText } from "@/components/CopyText";
import { Facts } from "@/components/Facts";
import { Section } from "@/components/Section";
import { sessionQuery } from "@/lib/api/session";
import { Verification } from "@/features/session/components/Verification";
import { ThemeChoice } from "@/features/settings/components/ThemeChoice";
import { ZoneChoice } from "@/features/settings/components/ZoneChoice";

export function SettingsPage(): ReactElement {
  const { data: session } = useQuery(sessionQuery);
  const { user, organization } = session ?? {};
  return (
    <>
      <Section title="Theme" lead="Kept in this browser.">
        <ThemeChoice />
      </Section>
      <Section
        title="Times"
        lead="Kept in this browser. Usage and money are counted, and always shown, in UTC."
      >
        <ZoneChoice />
      </Section>
      <Section title="Organization">
        <Facts
          items={[
            ["Name", organization?.name],
            ["Id", organization && <CopyText value={organization.id} what="the id" />],
          ]}
        />
      </Section>
      <Section title="You">
        <Facts
          items={[
            ["Mail address", user?.email],
            ["Verified", user && <Verification user={user} />],
          ]}
        />
      </Section>
    </>
  );
}
