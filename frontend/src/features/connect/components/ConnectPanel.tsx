import { Stack, Tabs } from "@mantine/core";
import { type ReactElement, useState } from "react";
import { CodeBlock } from "@/components/CodeBlock";
import { GuardedButton } from "@/components/GuardedButton";
import { Note } from "@/components/Note";
import type { Cluster } from "@/lib/api/types";
import { type FreshCredential, useFreshCredential } from "@/lib/freshCredentials";
import { useView } from "@/lib/useView";
import { type Choice, connectionOf } from "../connection";
import { LANGUAGES } from "../snippets";
import { ChoiceBar } from "./ChoiceBar";
import classes from "./ConnectPanel.module.css";

interface Props {
  cluster: Cluster;
  topics: string[];
  /** Makes a credential, whose password the page then remembers. */
  onCreateCredential: () => void;
  creating: boolean;
  /** Why the person may not make a credential; undefined where they may. */
  refused: string | undefined;
}

/** Shows how to connect a client, as code that runs as pasted. */
export function ConnectPanel(props: Props): ReactElement {
  const { cluster, topics, onCreateCredential, creating, refused } = props;
  const fresh = useFreshCredential(cluster.id);
  const [choice, setChoice] = useState<Choice>({ caPath: "ca.pem" });
  const [language, setLanguage] = useView("language");
  const connection = connectionOf(cluster, topics, choice, fresh);
  return (
    <Stack gap="md">
      <ChoiceBar
        endpoints={cluster.endpoints}
        topics={topics}
        connection={connection}
        onChange={(change) => {
          setChoice({ ...choice, ...change });
        }}
      />
      <Notice fresh={fresh} onCreate={onCreateCredential} creating={creating} refused={refused} />
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

interface NoticeProps {
  fresh: FreshCredential | undefined;
  onCreate: () => void;
  creating: boolean;
  refused: string | undefined;
}

function Notice({ fresh, onCreate, creating, refused }: NoticeProps): ReactElement {
  if (fresh) {
    return (
      <Note tone="running">
        The credential <code>{fresh.username}</code> is filled in. Its password is known to this
        page only until it is reloaded.
      </Note>
    );
  }
  return (
    <Note
      tone="waking"
      action={
        <GuardedButton refused={refused} onClick={onCreate} loading={creating}>
          Create a credential and fill it in
        </GuardedButton>
      }
    >
      The snippets need a credential. Passwords are not kept, so one that was made earlier cannot be
      filled in.
    </Note>
  );
}
