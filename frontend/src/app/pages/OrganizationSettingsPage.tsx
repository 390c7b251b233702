import { Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Note } from "@/components/Note";
import { Section } from "@/components/Section";
import { organizationQuery } from "@/features/organization/api/organization";
import { CloseOrganization } from "@/features/organization/components/CloseOrganization";
import { SecurityForm } from "@/features/organization/components/SecurityForm";
import { sessionQuery } from "@/lib/api/session";
import { useRefusal } from "@/lib/permissions";

/** The security rules of the organization, its export, and its closing. */
export function OrganizationSettingsPage(): ReactElement {
  const { data: organization, error, refetch } = useQuery(organizationQuery);
  const { data: session } = useQuery(sessionQuery);
  const manage = useRefusal("manage");
  const own = useRefusal("own");
  if (error && !organization) {
    return (
      <ErrorPanel
        error={error}
        what="The organization could not be read"
        onRetry={() => void refetch()}
      />
    );
  }
  if (!organization) return <Skeleton height={280} maw={560} />;
  const closed = organization.closed_at === null ? undefined : "The organization is closed.";
  return (
    <div style={{ maxWidth: 560 }}>
      {closed && <Note tone="suspended">{closed} It can be read, and not changed.</Note>}
      <Section title="Safety" lead="The rules hold for every member and every API key, at once.">
        <SecurityForm
          key={organization.generation}
          organization={organization}
          refused={closed ?? manage}
        />
      </Section>
      <Section title="Export or close the organization">
        <CloseOrganization
          name={organization.name}
          asksCode={session?.user?.two_factor ?? false}
          refusedExport={manage}
          refused={closed ?? own}
        />
      </Section>
    </div>
  );
}
