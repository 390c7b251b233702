import { Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { Facts } from "@/components/Facts";
import { GuardedButton } from "@/components/GuardedButton";
import { Listed } from "@/components/Listed";
import { Moment } from "@/components/Moment";
import { PageHead } from "@/components/PageHead";
import { Section } from "@/components/Section";
import { SidePanel } from "@/components/SidePanel";
import { invitationListQuery, memberListQuery } from "@/features/members/api/members";
import { InvitationTable } from "@/features/members/components/InvitationTable";
import { InviteForm } from "@/features/members/components/InviteForm";
import { MemberRole } from "@/features/members/components/MemberRole";
import { MemberTable } from "@/features/members/components/MemberTable";
import { RoleBindings } from "@/features/rolebindings/components/RoleBindings";
import { projectListQuery } from "@/lib/api/projects";
import { sessionQuery } from "@/lib/api/session";
import type { Member } from "@/lib/api/types";
import { useRefusal } from "@/lib/permissions";
import { usePanel } from "./usePanel";

/** The members of the organization, and invitations. */
export function MembersPage(): ReactElement {
  const panel = usePanel("invite");
  const refused = useRefusal("manage");
  const { data: session } = useQuery(sessionQuery);
  const members = useQuery(memberListQuery);
  const opened = members.data?.find(({ id }) => id === panel.name);
  return (
    <>
      <PageHead
        title="Members"
        lead="People of the organization. A role holds everywhere; roles in projects add to it."
        actions={
          <GuardedButton
            refused={refused}
            leftSection={<IconPlus size={14} />}
            onClick={panel.open}
          >
            Invite somebody
          </GuardedButton>
        }
      />
      <Listed
        query={members}
        what="The members could not be read"
        empty={<Empty title="No member">Invite somebody. Members are listed here.</Empty>}
      >
        {(rows) => <MemberTable members={rows} userId={session?.user?.id} />}
      </Listed>
      {!refused && <Invitations />}
      <SidePanel opened={panel.opened && !refused} onClose={panel.close} title="Invite somebody">
        <InviteForm onDone={panel.close} />
      </SidePanel>
      <SidePanel
        opened={opened !== undefined}
        onClose={panel.close}
        title={opened?.email ?? "Member"}
        size={560}
      >
        {opened && <MemberDetails member={opened} refused={refused} />}
      </SidePanel>
    </>
  );
}

function Invitations(): ReactElement {
  const invitations = useQuery(invitationListQuery);
  return (
    <div style={{ marginTop: 28 }}>
      <Section title="Invitations" lead="Each link works once, and for 7 days.">
        <Listed
          query={invitations}
          what="The invitations could not be read"
          empty={
            <Empty title="No invitation">
              People who are invited get a mail with a link. They are listed here until they have
              joined.
            </Empty>
          }
        >
          {(rows) => <InvitationTable invitations={rows} />}
        </Listed>
      </Section>
    </div>
  );
}

interface DetailsProps {
  member: Member;
  refused: string | undefined;
}

function MemberDetails({ member, refused }: DetailsProps): ReactElement {
  const { data: projects } = useQuery(projectListQuery);
  return (
    <Stack gap="xl">
      <Facts
        items={[
          ["Name", member.name || "–"],
          ["Joined", <Moment key="at" at={member.created_at} />],
          ["Two-factor", member.two_factor ? "on" : "off"],
        ]}
      />
      <MemberRole key={member.role} member={member} />
      <RoleBindings
        of={{ principal: "user", id: member.user_id }}
        others={(projects ?? []).map(({ id, name }) => ({ id, label: name }))}
        label="Project"
        refused={refused}
      />
    </Stack>
  );
}
