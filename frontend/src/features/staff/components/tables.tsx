import { Moment } from "@/components/Moment";
import { StateMark } from "@/components/StateMark";
import type { Column } from "@/components/DataTable";
import type {
  InvoiceMonth,
  MissingInvoice,
  StaffCell,
  StaffCluster,
  StaffIncident,
  StaffOperation,
} from "@/lib/api/types";
import { RunningJobs } from "./RunningJobs";

const phasesOf = (cell: StaffCell): string =>
  Object.entries(cell.phases)
    .map(([phase, count]) => `${String(count)} ${phase}`)
    .join(", ") || "none";

export const CELLS: Column<StaffCell>[] = [
  { id: "id", header: "Cell", sortBy: (cell) => cell.id, cell: (cell) => cell.id },
  { id: "region", header: "Region", cell: (cell) => cell.region },
  {
    id: "reachable",
    header: "Metadata store",
    cell: (cell) => (
      <StateMark tone={cell.reachable ? "running" : "failed"}>
        {cell.reachable ? "Answers" : "Silent"}
      </StateMark>
    ),
  },
  { id: "phases", header: "Clusters", cell: phasesOf },
  { id: "brokers", header: "Brokers", align: "right", cell: (cell) => cell.brokers },
  { id: "connections", header: "Connections", align: "right", cell: (cell) => cell.connections },
  { id: "restarts", header: "Restarts", align: "right", cell: (cell) => cell.restarts },
  {
    id: "hours",
    header: "Incomplete hours",
    align: "right",
    cell: (cell) => cell.meter.incomplete_hours,
  },
  { id: "metered", header: "Metered", cell: (cell) => <Moment at={cell.meter.ran_at} /> },
  {
    id: "running",
    header: "Roll-ups that run",
    isSentence: true,
    cell: (cell) => <RunningJobs jobs={cell.meter.running} />,
  },
];

export const CLUSTERS: Column<StaffCluster>[] = [
  { id: "name", header: "Cluster", sortBy: (row) => row.name, cell: (row) => row.name },
  { id: "id", header: "Id", cell: (row) => <code>{row.id}</code> },
  {
    id: "organization",
    header: "Organization",
    sortBy: (row) => row.organization.name,
    cell: (row) => row.organization.name,
  },
  { id: "cell", header: "Cell", cell: (row) => row.cell },
  { id: "phase", header: "Phase", sortBy: (row) => row.phase, cell: (row) => row.phase },
  { id: "message", header: "Keeper says", cell: (row) => row.message || "–" },
  {
    id: "behind",
    header: "Generations behind",
    align: "right",
    sortBy: (row) => row.generation - row.reconciled_generation,
    cell: (row) => row.generation - row.reconciled_generation,
  },
  { id: "checked", header: "Checked", cell: (row) => <Moment at={row.checked_at} /> },
];

export const OPERATIONS: Column<StaffOperation>[] = [
  { id: "type", header: "Operation", cell: (row) => row.type.replaceAll("_", " ") },
  { id: "resource", header: "Cluster", cell: (row) => <code>{row.resource_id}</code> },
  { id: "organization", header: "Organization", cell: (row) => row.organization.name },
  { id: "state", header: "State", sortBy: (row) => row.state, cell: (row) => row.state },
  { id: "progress", header: "Done", align: "right", cell: (row) => `${String(row.progress)} %` },
  { id: "error", header: "Error", cell: (row) => row.error?.code ?? "–" },
  {
    id: "created",
    header: "Begun",
    sortBy: (row) => row.created_at,
    cell: (row) => <Moment at={row.created_at} />,
  },
];

const TONES = { open: "failed", suspected: "waking", closed: "running" } as const;

export const INCIDENTS: Column<StaffIncident>[] = [
  { id: "title", header: "Incident", cell: (row) => row.title },
  {
    id: "state",
    header: "State",
    sortBy: (row) => row.state,
    cell: (row) => <StateMark tone={TONES[row.state]}>{row.state}</StateMark>,
  },
  { id: "cluster", header: "Cluster", cell: (row) => <code>{row.cluster_id ?? "–"}</code> },
  {
    id: "opened",
    header: "Since",
    sortBy: (row) => row.opened_at,
    cell: (row) => <Moment at={row.opened_at} />,
  },
];

export const INVOICE_MONTHS: Column<InvoiceMonth>[] = [
  { id: "month", header: "Month", sortBy: (row) => row.id, cell: (row) => row.id },
  {
    id: "state",
    header: "State",
    cell: (row) => (
      <StateMark tone={row.finished_at ? "running" : row.reason ? "failed" : "waking"}>
        {row.finished_at ? "Issued" : row.reason ? "Not issued" : "Being issued"}
      </StateMark>
    ),
  },
  { id: "reason", header: "Reason", isSentence: true, cell: (row) => row.reason || "–" },
  { id: "attempts", header: "Failed attempts", align: "right", cell: (row) => row.attempts },
  { id: "finished", header: "Issued", cell: (row) => <Moment at={row.finished_at} /> },
  {
    id: "next",
    header: "Next attempt",
    cell: (row) => (row.finished_at ? "–" : <Moment at={row.next_try_at} />),
  },
];

export const MISSING_INVOICES: Column<MissingInvoice>[] = [
  { id: "month", header: "Month", sortBy: (row) => row.month, cell: (row) => row.month },
  {
    id: "organization",
    header: "Organization",
    sortBy: (row) => row.organization.name,
    cell: (row) => row.organization.name,
  },
  { id: "id", header: "Id", cell: (row) => <code>{row.organization.id}</code> },
  {
    id: "reason",
    header: "Reason",
    isSentence: true,
    sortBy: (row) => row.reason,
    cell: (row) => row.reason,
  },
  { id: "attempts", header: "Attempts", align: "right", cell: (row) => row.attempts },
  {
    id: "since",
    header: "Since",
    sortBy: (row) => row.created_at,
    cell: (row) => <Moment at={row.created_at} />,
  },
  { id: "next", header: "Next attempt", cell: (row) => <Moment at={row.next_try_at} /> },
];
