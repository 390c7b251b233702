import { Button, SegmentedControl } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { type ReactElement, useState } from "react";
import { CopyButton } from "@/components/CopyButton";
import { Escaped } from "@/components/Name";
import type { RecordBytes } from "@/lib/api/types";
import { formatBytes } from "@/lib/format/bytes";
import { base64Lines, bytesOf, hexDump, prettyJson, readingsOf } from "../bytes";
import classes from "./MessagePanel.module.css";

type View = "json" | "text" | "hex" | "base64";

const LABELS: Record<View, string> = { json: "JSON", text: "Text", hex: "Hex", base64: "Base64" };

/** So many characters are drawn: a page with megabytes of text stops answering. */
const DRAWN_MAX = 400_000;
/** A hex dump has more than four characters for each byte. */
const HEX_BYTES_MAX = 65_536;

interface Props {
  title: string;
  content: RecordBytes | null;
  /** Shown in place of bytes that are not there. */
  nothing: string;
  /** Reads all bytes; undefined where all are there. */
  onLoad: (() => void) | undefined;
  loading: boolean;
  onDownload: (content: RecordBytes) => void;
}

/** A key or a value as JSON, text, hex or base64, with what its bytes may be. */
export function RecordPart(props: Props): ReactElement {
  const { title, content, nothing, onLoad, loading, onDownload } = props;
  const [chosen, setChosen] = useState<View>();
  if (content === null || content.size === 0) {
    return (
      <section>
        <h3 className={classes.title}>{title}</h3>
        <p className={classes.nothing}>
          {content === null ? nothing : "No bytes: it is empty, which is not null."}
        </p>
      </section>
    );
  }
  const what = `the ${title.toLowerCase()}`;
  const json = prettyJson(content);
  const readings = readingsOf(content);
  const views = viewsOf(content, json);
  const readable = content.text !== null && readings.length === 0;
  const best: View = json !== null ? "json" : readable ? "text" : "hex";
  const view = chosen && views.includes(chosen) ? chosen : best;
  const code = codeOf(view, content, json);
  return (
    <section>
      <div className={classes.bar}>
        <h3 className={classes.title}>{title}</h3>
        <span className={classes.tools}>
          <SegmentedControl
            size="xs"
            aria-label={`Show ${what} as`}
            value={view}
            onChange={(next) => {
              setChosen(next as View);
            }}
            data={views.map((value) => ({ value, label: LABELS[value] }))}
          />
          <CopyButton value={code} what={what} />
        </span>
      </div>
      {readings.length > 0 && <p className={classes.reading}>{readings.join(", or ")}</p>}
      <pre className={classes.code} tabIndex={0} data-view={view}>
        <bdi>
          <Escaped text={code.slice(0, DRAWN_MAX)} lines />
        </bdi>
      </pre>
      <p className={classes.nothing}>
        {onLoad && <>The first 64 KiB of {formatBytes(content.size)}. </>}
        {!content.truncated && code.length > DRAWN_MAX && "The beginning is shown, all is copied. "}
        {view === "hex" && content.size > HEX_BYTES_MAX && "Hex has the first 64 KiB. "}
      </p>
      <span className={classes.tools}>
        {onLoad && (
          <Button variant="default" size="compact-xs" loading={loading} onClick={onLoad}>
            Load all of it
          </Button>
        )}
        {!content.truncated && (
          <Button
            variant="subtle"
            size="compact-xs"
            leftSection={<IconDownload size={13} />}
            aria-label={`Download ${what}`}
            onClick={() => {
              onDownload(content);
            }}
          >
            Download {formatBytes(content.size)}
          </Button>
        )}
      </span>
    </section>
  );
}

function viewsOf(content: RecordBytes, json: string | null): View[] {
  const views: View[] = ["hex", "base64"];
  if (content.text !== null) views.unshift("text");
  if (json !== null) views.unshift("json");
  return views;
}

function codeOf(view: View, content: RecordBytes, json: string | null): string {
  if (view === "json") return json ?? "";
  if (view === "text") return content.text ?? "";
  if (view === "base64") return base64Lines(content);
  return hexDump(bytesOf(content).subarray(0, HEX_BYTES_MAX));
}
