import { Menu, UnstyledButton, VisuallyHidden } from "@mantine/core";
import {
  IconBell,
  IconChartAreaLine,
  IconDatabase,
  IconFileInvoice,
  IconHistory,
  IconKey,
  IconLayoutDashboard,
  IconLogout,
  IconMail,
  IconSelector,
  IconSettings,
  IconTool,
  type TablerIcon,
} from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { localMailQuery } from "@/features/mail/api/mail";
import { useSignOut, useSwitchOrganization } from "@/features/session/api/session";
import { Logo } from "@/components/Logo";
import type { Session } from "@/lib/api/types";
import classes from "./Rail.module.css";
import { ServiceDot } from "./ServiceDot";

type Target =
  | "/"
  | "/clusters"
  | "/alerts"
  | "/usage"
  | "/invoices"
  | "/access"
  | "/audit"
  | "/mail"
  | "/settings"
  | "/staff";

interface ItemProps {
  to: Target;
  label: string;
  icon: TablerIcon;
}

function Item({ to, label, icon: Icon }: ItemProps): ReactElement {
  return (
    <Link
      to={to}
      className={classes.item}
      activeProps={{ "data-active": true }}
      activeOptions={{ exact: to === "/", includeSearch: false }}
      title={label}
    >
      <Icon size={17} stroke={1.7} aria-hidden="true" />
      <span>{label}</span>
    </Link>
  );
}

/** The narrow rail at the left: the organization, the pages, and the state of the service. */
export function Rail({ session }: { session: Session }): ReactElement {
  const { data: mail } = useQuery(localMailQuery);
  return (
    <nav className={classes.rail} aria-label="Main">
      <div className={classes.brand}>
        <Logo />
      </div>
      <Account session={session} />
      <div className={classes.items}>
        <Item to="/" label="Overview" icon={IconLayoutDashboard} />
        <Item to="/clusters" label="Clusters" icon={IconDatabase} />
        <Item to="/alerts" label="Alerts" icon={IconBell} />
        <Item to="/usage" label="Usage" icon={IconChartAreaLine} />
        <Item to="/invoices" label="Invoices" icon={IconFileInvoice} />
        <Item to="/access" label="Access" icon={IconKey} />
        <Item to="/audit" label="Audit log" icon={IconHistory} />
        {mail && <Item to="/mail" label="Local mail" icon={IconMail} />}
        <Item to="/settings" label="Settings" icon={IconSettings} />
        {session.user?.is_staff && <Item to="/staff" label="Staff" icon={IconTool} />}
      </div>
      <ServiceDot />
    </nav>
  );
}

function Account({ session }: { session: Session }): ReactElement {
  const navigate = useNavigate();
  const signOut = useSignOut();
  const switchTo = useSwitchOrganization();
  const others = session.organizations.filter(({ id }) => id !== session.organization?.id);
  const name = session.organization?.name ?? "No organization";
  return (
    <Menu position="bottom-start" width={220} shadow="md">
      <Menu.Target>
        <UnstyledButton className={classes.account}>
          <span className={classes.initial} aria-hidden="true">
            {name.slice(0, 1).toUpperCase()}
          </span>
          <VisuallyHidden>Account of </VisuallyHidden>
          <span className={classes.names}>
            <span>{name}</span> <span className={classes.mail}>{session.user?.email}</span>
          </span>
          <IconSelector size={14} aria-hidden="true" className={classes.chevron} />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{session.user?.email}</Menu.Label>
        {others.map(({ id, name: other }) => (
          <Menu.Item
            key={id}
            onClick={() => {
              switchTo.mutate(id);
            }}
          >
            Switch to {other}
          </Menu.Item>
        ))}
        <Menu.Item onClick={() => void navigate({ to: "/settings" })}>Settings</Menu.Item>
        <Menu.Item
          leftSection={<IconLogout size={15} />}
          onClick={() => {
            signOut.mutate();
          }}
        >
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
