import { Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { RoleBindings } from "@/features/rolebindings/components/RoleBindings";
import { serviceAccountListQuery } from "@/features/serviceaccounts/api/serviceAccounts";
import {
  EditServiceAccountForm,
  NewServiceAccountForm,
} from "@/features/serviceaccounts/components/ServiceAccountForm";
import { ServiceAccountTable } from "@/features/serviceaccounts/components/ServiceAccountTable";
import { projectListQuery } from "@/lib/api/projects";
import { useRefusal, useRefusalOver } from "@/lib/permissions";
import { usePanel } from "./usePanel";

/** The service accounts of the organization. */
export function ServiceAccountsPage(): ReactElement {
  const panel = usePanel("new");
  const refused = useRefusal("manage");
  const refusedOver = useRefusalOver();
  const accounts = useQuery(serviceAccountListQuery);
  const projects = useQuery(projectListQuery).data ?? [];
  const opened = accounts.data?.find(({ id }) => id === panel.name);
  const button = (
    <GuardedButton refused={refused} leftSection={<IconPlus size={14} />} onClick={panel.open}>
      New service account
    </GuardedButton>
  );
  return (
    <>
      <PageHead
        title="Service accounts"
        lead="For programs: they stay when people leave. Their API keys have the account's roles."
        actions={button}
      />
      <Listed
        query={accounts}
        what="The service accounts could not be read"
        empty={
          <Empty title="No service account" action={button}>
            A pipeline or Terraform gets an account of its own: its roles are changed in one place,
            and its keys are rotated two at a time.
          </Empty>
        }
      >
        {(rows) => <ServiceAccountTable accounts={rows} />}
      </Listed>
      <SidePanel
        opened={panel.opened && !refused}
        onClose={panel.close}
        title="New service account"
      >
        <NewServiceAccountForm onDone={panel.close} />
      </SidePanel>
      <SidePanel
        opened={opened !== undefined}
        onClose={panel.close}
        title={opened?.name ?? "Service account"}
        size={560}
      >
        {opened && (
          <Stack gap="xl">
            <EditServiceAccountForm
              key={opened.generation}
              account={opened}
              refused={refusedOver(opened.role)}
              onDone={panel.close}
            />
            <RoleBindings
              of={{ principal: "service_account", id: opened.id }}
              others={projects.map(({ id, name }) => ({ id, label: name }))}
              label="Project"
              refused={refused}
            />
          </Stack>
        )}
      </SidePanel>
    </>
  );
}
