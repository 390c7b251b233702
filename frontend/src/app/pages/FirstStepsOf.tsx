import { Button, Stack } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { ErrorPanel } from "@/components/ErrorPanel";
import { Section } from "@/components/Section";
import { firstStepsQuery } from "@/features/connect/api/connect";
import { ConnectPanel } from "@/features/connect/components/ConnectPanel";
import { StepList } from "@/features/connect/components/StepList";
import { areDone, followedOf } from "@/features/connect/steps";
import type { Cluster, FirstSteps } from "@/lib/api/types";
import { legible } from "@/lib/format/legible";
import { useConnect } from "./useConnect";

/**
 * The first steps with the newest clusters, as long as some are left: of the first such cluster
 * with its snippets. Those that are done while somebody looks stay until they leave the page.
 */
export function FirstStepsOf({ clusters }: { clusters: readonly Cluster[] }): ReactElement {
  const followed = followedOf(clusters);
  const answers = useQueries({ queries: followed.map(({ id }) => firstStepsQuery(id)) });
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const steps = followed.flatMap((cluster, at) => {
    const known = answers[at]?.data;
    return known ? [{ cluster, steps: known }] : [];
  });
  const open = steps.filter((one) => !areDone(one.steps)).map(({ cluster }) => cluster.id);
  if (open.some((id) => !seen.has(id))) setSeen(new Set([...seen, ...open]));
  const [first, ...others] = steps.filter(({ cluster }) => seen.has(cluster.id));
  const failed = answers.find(({ error, data }) => error && !data);
  return (
    <>
      {failed?.error && (
        <ErrorPanel
          error={failed.error}
          what="The first steps could not be read"
          onRetry={() => void failed.refetch()}
        />
      )}
      {first && <WithSnippets key={first.cluster.id} {...first} />}
      {others.map((other) => (
        <WithoutSnippets key={other.cluster.id} {...other} />
      ))}
    </>
  );
}

interface Props {
  cluster: Cluster;
  steps: FirstSteps;
}

function WithSnippets({ cluster, steps }: Props): ReactElement {
  const { topics, refused } = useConnect(cluster);
  const topic = topics?.[0];
  return (
    <Section
      title={`Connect to ${legible(cluster.name)}`}
      lead="Paste a snippet, then watch its message arrive."
      actions={
        topic !== undefined && (
          <Button
            variant="default"
            renderRoot={(props) => (
              <Link
                to="/clusters/$clusterId/topics/$topic"
                params={{ clusterId: cluster.id, topic }}
                search={{ from: "live" }}
                {...props}
              />
            )}
          >
            Watch {legible(topic)} live
          </Button>
        )
      }
    >
      <Stack gap="md" maw={980}>
        <ConnectPanel cluster={cluster} steps={steps} topics={topics} refused={refused} />
      </Stack>
    </Section>
  );
}

function WithoutSnippets({ cluster, steps }: Props): ReactElement {
  return (
    <Section
      title={`First steps with ${legible(cluster.name)}`}
      actions={
        <Button
          variant="default"
          renderRoot={(props) => (
            <Link to="/clusters/$clusterId/connect" params={{ clusterId: cluster.id }} {...props} />
          )}
        >
          Connect a client
        </Button>
      }
    >
      <StepList steps={steps} />
    </Section>
  );
}
