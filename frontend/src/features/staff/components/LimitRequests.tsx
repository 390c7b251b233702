import { Button, Group, Stack, Textarea } from "@mantine/core";
import { type ReactElement, useMemo, useState } from "react";
import { type Column, DataTable } from "@/components/DataTable";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Facts } from "@/components/Facts";
import { RowButton } from "@/components/GuardedButton";
import { Moment } from "@/components/Moment";
import { SidePanel } from "@/components/SidePanel";
import type { StaffLimitRequest } from "@/lib/api/types";
import { formatCount } from "@/lib/format/bytes";
import { useGrant, useRefuse } from "../api/staff";

/** The limit requests of customers. An open one is answered in the side panel. */
export function LimitRequests({
  requests,
}: {
  requests: readonly StaffLimitRequest[] | undefined;
}): ReactElement {
  const [asked, setAsked] = useState<StaffLimitRequest>();
  const columns = useMemo(() => columnsOf(setAsked), []);
  const close = (): void => {
    setAsked(undefined);
  };
  return (
    <>
      <DataTable
        label="Limit requests"
        columns={columns}
        rows={requests}
        rowId={(request) => request.id}
        initialSort={[{ id: "created", desc: true }]}
      />
      <SidePanel opened={asked !== undefined} onClose={close} title="Answer a request">
        {asked && <Answer request={asked} onDone={close} />}
      </SidePanel>
    </>
  );
}

function columnsOf(onAnswer: (request: StaffLimitRequest) => void): Column<StaffLimitRequest>[] {
  return [
    { id: "limit", header: "Limit", cell: (row) => row.limit.replaceAll("_", " ") },
    {
      id: "organization",
      header: "Organization",
      cell: (row) => <code>{row.organization_id}</code>,
    },
    { id: "wanted", header: "Requested", align: "right", cell: (row) => formatCount(row.wanted) },
    { id: "state", header: "State", sortBy: (row) => row.state, cell: (row) => row.state },
    {
      id: "created",
      header: "Asked",
      sortBy: (row) => row.created_at,
      cell: (row) => <Moment at={row.created_at} />,
    },
    {
      id: "answer",
      header: "",
      align: "right",
      cell: (row) => (
        <RowButton
          refused={row.state === "open" ? undefined : "It is answered."}
          aria-label={`Answer ${row.limit} of ${row.organization_id}`}
          onClick={() => {
            onAnswer(row);
          }}
        >
          Answer
        </RowButton>
      ),
    },
  ];
}

interface Props {
  request: StaffLimitRequest;
  onDone: () => void;
}

function Answer({ request, onDone }: Props): ReactElement {
  const grant = useGrant(request.id);
  const refuse = useRefuse(request.id);
  const [answer, setAnswer] = useState("");
  const error = grant.error ?? refuse.error;
  const options = { onSuccess: onDone };
  return (
    <Stack gap="md">
      <Facts
        items={[
          ["Limit", request.limit.replaceAll("_", " ")],
          ["Requested", formatCount(request.wanted)],
          ["Cluster", request.cluster_id ?? "all"],
          ["Reason", request.reason],
        ]}
      />
      <Textarea
        label="Answer"
        description="The customer reads it. A refusal needs one."
        autosize
        minRows={3}
        value={answer}
        onChange={(event) => {
          setAnswer(event.currentTarget.value);
        }}
      />
      {error && <ErrorPanel error={error} what="It was not answered" />}
      <Group justify="flex-end" gap="xs">
        <Button
          variant="default"
          disabled={answer.trim() === ""}
          loading={refuse.isPending}
          onClick={() => {
            refuse.mutate({ answer: answer.trim() }, options);
          }}
        >
          Refuse
        </Button>
        <Button
          loading={grant.isPending}
          onClick={() => {
            grant.mutate({ answer: answer.trim() }, options);
          }}
        >
          Grant {formatCount(request.wanted)}
        </Button>
      </Group>
    </Stack>
  );
}
