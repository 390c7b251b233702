import { Button, Group } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactElement } from "react";
import { Empty } from "@/components/Empty";
import { Listed } from "@/components/Listed";
import { Note } from "@/components/Note";
import { PageHead } from "@/components/PageHead";
import { SidePanel } from "@/components/SidePanel";
import { auditLogQuery } from "@/features/audit/api/audit";
import { AuditFilters } from "@/features/audit/components/AuditFilters";
import { AuditPanel } from "@/features/audit/components/AuditPanel";
import { AuditTable } from "@/features/audit/components/AuditTable";
import { auditQuery, exportPath } from "@/features/audit/filter";
import type { AuditQuery } from "@/lib/api/types";
import { formatNumber } from "@/lib/format/bytes";
import { useRefusal } from "@/lib/permissions";
import { useNow } from "@/lib/useNow";

/** The audit log, with its filters. */
export function AuditPage(): ReactElement {
  const refused = useRefusal("manage");
  const navigate = useNavigate();
  const { panel, actor, action, type, target, since } = useSearch({ from: "/frame/audit" });
  const filter = { actor, action, type, target, since };
  const query = auditQuery(filter, useNow());
  return (
    <>
      <PageHead
        title="Audit log"
        lead="Every change, and who read records: people, keys, Kafka clients and Freshet itself."
        actions={!refused && <Exports query={query} />}
      />
      {refused ? (
        <Note tone="quiet">{refused}</Note>
      ) : (
        <>
          <AuditFilters
            filter={filter}
            onChange={(search) => void navigate({ to: "/audit", search })}
          />
          <Entries query={query} panel={panel} filtered={Object.values(filter).some(Boolean)} />
        </>
      )}
    </>
  );
}

function Exports({ query }: { query: AuditQuery }): ReactElement {
  return (
    <>
      {(["csv", "jsonl"] as const).map((format) => (
        <Button
          key={format}
          component="a"
          href={exportPath(query, format)}
          download={`audit-log.${format}`}
          variant="default"
          leftSection={<IconDownload size={14} />}
        >
          {format === "csv" ? "CSV" : "JSON lines"}
        </Button>
      ))}
    </>
  );
}

interface EntriesProps {
  query: AuditQuery;
  panel: string | undefined;
  filtered: boolean;
}

function Entries({ query, panel, filtered }: EntriesProps): ReactElement {
  const navigate = useNavigate();
  const log = useInfiniteQuery(auditLogQuery(query));
  const entries = log.data?.pages.flatMap((page) => page.items);
  const opened = entries?.find(({ id }) => id === panel);
  return (
    <>
      <Listed
        query={{ data: entries, error: log.error, refetch: log.refetch }}
        what="The audit log could not be read"
        empty={
          <Empty title={filtered ? "Nothing of this kind" : "Nothing happened yet"}>
            {filtered
              ? "No entry matches all filters above. Remove one, or go further back."
              : "Each change of the organization and of what is in it is listed here."}
          </Empty>
        }
      >
        {(rows) => <AuditTable entries={rows} />}
      </Listed>
      {entries !== undefined && entries.length > 0 && (
        <Group gap="md" mt="sm">
          <span>{formatNumber(entries.length, "entry").replace("entrys", "entries")}</span>
          <Button
            variant="default"
            size="compact-xs"
            disabled={!log.hasNextPage}
            loading={log.isFetchingNextPage}
            onClick={() => void log.fetchNextPage()}
          >
            {log.hasNextPage ? "Read on" : "All read"}
          </Button>
        </Group>
      )}
      <SidePanel
        opened={opened !== undefined}
        onClose={() =>
          void navigate({ to: ".", search: (before) => ({ ...before, panel: undefined }) })
        }
        title="Audit entry"
        size={520}
      >
        {opened && <AuditPanel entry={opened} />}
      </SidePanel>
    </>
  );
}
