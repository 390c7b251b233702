import { useEffect, useRef, useState } from "react";
import type { Damaged, Message } from "@/lib/api/types";

/** At most so many records stay on the page; older ones are dropped. */
export const TAIL_MAX = 2_000;

/** Records are shown in batches, so that a busy topic does not render a thousand times a second. */
const BATCH_MS = 100;

type Connection = "connecting" | "live" | "broken" | "unreadable";

export type TailState = Connection | "paused";

export interface Tail {
  state: TailState;
  /** Newest first. */
  messages: Message[];
  /** How many records arrived while it was paused, and are not shown yet. */
  held: number;
  /** How many records came too fast to be shown. */
  skipped: number;
  /** Batches that cannot be decoded, the newest first. */
  damaged: Damaged[];
  setPaused: (paused: boolean) => void;
  clear: () => void;
}

/** Adds arrived records (oldest first) to the front of the shown ones (newest first). */
export function prepend(shown: Message[], came: readonly Message[]): Message[] {
  return [...came].reverse().concat(shown).slice(0, TAIL_MAX);
}

/** Returns the address of a topic's stream. */
export function streamUrl(
  clusterId: string,
  topic: string,
  wake: boolean,
  filter: string | undefined,
): string {
  const path = ["clusters", clusterId, "topics", topic, "messages", "stream"];
  const query = new URLSearchParams();
  if (wake) query.set("wake", "true");
  if (filter !== undefined) query.set("filter", filter);
  const words = query.toString();
  return `/api/v1/${path.map(encodeURIComponent).join("/")}${words && `?${words}`}`;
}

/**
 * Follows a topic's end by server-sent events. When the server ends a stream the browser asks again
 * by itself, and goes on where it was.
 */
export function useTail(
  clusterId: string,
  topic: string,
  wake: boolean,
  filter: string | undefined,
): Tail {
  const [messages, setMessages] = useState<Message[]>([]);
  const [held, setHeld] = useState<Message[]>([]);
  const [skipped, setSkipped] = useState(0);
  const [damaged, setDamaged] = useState<Damaged[]>([]);
  const [connection, setConnection] = useState<Connection>("connecting");
  const [paused, setPausedState] = useState(false);
  const pausedNow = useRef(false);

  useEffect(() => {
    const source = new EventSource(streamUrl(clusterId, topic, wake, filter));
    let waiting: Message[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = (): void => {
      const came = waiting;
      waiting = [];
      timer = undefined;
      (pausedNow.current ? setHeld : setMessages)((shown) => prepend(shown, came));
    };
    source.addEventListener("message", (event: MessageEvent<string>) => {
      waiting.push(JSON.parse(event.data) as Message);
      timer ??= setTimeout(flush, BATCH_MS);
    });
    source.addEventListener("skipped", (event: MessageEvent<string>) => {
      const { count } = JSON.parse(event.data) as { count: number };
      setSkipped((before) => before + count);
    });
    source.addEventListener("damaged", (event: MessageEvent<string>) => {
      const batch = JSON.parse(event.data) as Damaged;
      setDamaged((before) => [batch, ...before].slice(0, TAIL_MAX));
    });
    source.addEventListener("end", (event: MessageEvent<string>) => {
      const { reason } = JSON.parse(event.data) as { reason: string };
      if (reason !== "unreadable") return;
      // A new stream would begin at the same record, and fail again.
      source.close();
      setConnection("unreadable");
    });
    source.addEventListener("live", () => {
      setConnection("live");
    });
    source.onerror = () => {
      setConnection(source.readyState === EventSource.CLOSED ? "broken" : "connecting");
    };
    return () => {
      source.close();
      clearTimeout(timer);
      setConnection("connecting");
    };
  }, [clusterId, topic, wake, filter]);

  const setPaused = (next: boolean): void => {
    pausedNow.current = next;
    setPausedState(next);
    if (next) return;
    setMessages((shown) => [...held, ...shown].slice(0, TAIL_MAX));
    setHeld([]);
  };
  const clear = (): void => {
    setMessages([]);
    setHeld([]);
    setSkipped(0);
    setDamaged([]);
  };
  const state = paused ? "paused" : connection;
  return { state, messages, held: held.length, skipped, damaged, setPaused, clear };
}
