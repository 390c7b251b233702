import { Stack, Tabs } from "@mantine/core";
import { type ReactElement, useState } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import type { Cluster, FirstSteps } from "@/lib/api/types";
import { useFreshCredential } from "@/lib/freshCredentials";
import { useView } from "@/lib/useView";
import { type Choice, connectionOf } from "../connection";
import { LANGUAGES } from "../snippets";
import { ChoiceBar } from "./ChoiceBar";
import classes from "./ConnectPanel.module.css";
import { CredentialNote } from "./CredentialNote";
import { StepList } from "./StepList";

interface Props {
  cluster: Cluster;
  /** The names of its topics; undefined until they are read. */
  topics: string[] | undefined;
  /** Why the person may not make a credential; undefined where they may. */
  refused: string | undefined;
  /** The first steps, where they are to be shown. */
  steps?: FirstSteps | undefined;
}

/** Shows how to connect a client, as code that runs as pasted. */
export function ConnectPanel({ cluster, topics, refused, steps }: Props): ReactElement {
  const fresh = useFreshCredential(cluster.id);
  const [choice, setChoice] = useState<Choice>({ caPath: "ca.pem" });
  const [language, setLanguage] = useView("language");
  const connection = connectionOf(cluster, topics ?? [], choice, fresh);
  return (
    <Stack gap="md">
      {steps && <StepList steps={steps} />}
      <ChoiceBar
        endpoints={cluster.endpoints}
        topics={topics ?? []}
        connection={connection}
        onChange={(change) => {
          setChoice({ ...choice, ...change });
        }}
      />
      {topics && (
        <CredentialNote
          clusterId={cluster.id}
          topic={topics.length > 0 ? connection.topic : undefined}
          refused={refused}
        />
      )}
      <Tabs
        value={LANGUAGES.find(({ id }) => id === language)?.id ?? LANGUAGES[0]?.id}
        onChange={(next) => {
          setLanguage(next ?? undefined);
        }}
        keepMounted={false}
      >
        <Tabs.List mb="sm">
          {LANGUAGES.map(({ id, label }) => (
            <Tabs.Tab key={id} value={id}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {LANGUAGES.map(({ id, blocks }) => (
          <Tabs.Panel key={id} value={id}>
            <Stack gap="sm">
              {blocks(connection).map(({ title, code }) => (
                <CodeBlock key={title} title={title} code={code} />
              ))}
            </Stack>
          </Tabs.Panel>
        ))}
      </Tabs>
      {connection.listener === "SASL_SSL" && (
        <p className={classes.hint}>
          The gateway made its own certificate authority. The file is
          <code> gateway/ca.pem </code> in Freshet&apos;s home folder. Where a client does not
          resolve
          <code> .localhost </code> names, add them to the hosts file.
        </p>
      )}
    </Stack>
  );
}
