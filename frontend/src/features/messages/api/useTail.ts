import { useEffect, useRef, useState } from "react";
import type { Message } from "@/lib/api/types";

/** Older records leave the page: a tail is for looking, not for keeping. */
export const TAIL_MAX = 2_000;

export type TailState = "connecting" | "live" | "paused" | "broken";

export interface Tail {
  state: TailState;
  /** Newest first. */
  messages: Message[];
  /** Records that arrived while paused, not yet shown. */
  held: number;
  setPaused: (paused: boolean) => void;
  clear: () => void;
}

/** Adds what came, oldest first, to the front of what is shown. */
export function prepend(shown: Message[], came: readonly Message[]): Message[] {
  return [...came].reverse().concat(shown).slice(0, TAIL_MAX);
}

/** What an event holds: a batch, or one record. */
export function recordsOf(data: string): Message[] {
  const parsed = JSON.parse(data) as unknown;
  if (typeof parsed !== "object" || parsed === null) return [];
  if ("records" in parsed) return parsed.records as Message[];
  if ("items" in parsed) return parsed.items as Message[];
  return "offset" in parsed ? [parsed as Message] : [];
}

/** Follows a topic's end by server-sent events. The browser reconnects by itself. */
export function useTail(clusterId: string, topic: string, enabled: boolean): Tail {
  const [messages, setMessages] = useState<Message[]>([]);
  const [held, setHeld] = useState<Message[]>([]);
  const [connection, setConnection] = useState<"connecting" | "live" | "broken">("connecting");
  const [paused, setPausedState] = useState(false);
  const pausedNow = useRef(false);

  useEffect(() => {
    if (!enabled) return;
    const path = ["clusters", clusterId, "topics", topic, "messages", "stream"];
    const source = new EventSource(`/api/v1/${path.map(encodeURIComponent).join("/")}`);
    const receive = (event: MessageEvent<string>): void => {
      const came = recordsOf(event.data);
      if (came.length === 0) return;
      (pausedNow.current ? setHeld : setMessages)((shown) => prepend(shown, came));
    };
    source.onopen = () => {
      setConnection("live");
    };
    source.onerror = () => {
      setConnection(source.readyState === EventSource.CLOSED ? "broken" : "connecting");
    };
    for (const name of ["message", "records", "record"]) source.addEventListener(name, receive);
    return () => {
      source.close();
      setConnection("connecting");
    };
  }, [clusterId, topic, enabled]);

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
  };
  return { state: paused ? "paused" : connection, messages, held: held.length, setPaused, clear };
}
