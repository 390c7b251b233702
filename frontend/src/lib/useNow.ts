import { createContext, use, useSyncExternalStore } from "react";
import { serverTime } from "./serverTime";

let now = serverTime();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function tick(): void {
  now = serverTime();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    // While nobody listened the time stood still.
    tick();
    timer = setInterval(tick, 1000);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function present(): Date {
  // Without a timer nothing has moved it since the last component went away.
  if (timer === undefined && Math.abs(serverTime().getTime() - now.getTime()) > 1000) {
    now = serverTime();
  }
  return now;
}

/**
 * The time at which everything stands still: what is not read any more does not grow older by
 * itself. Undefined: it goes on.
 */
export const StoppedTime = createContext<Date | undefined>(undefined);

/**
 * Returns the present time of the service to the second. All components share one timer, so that
 * they change at the same moment.
 */
export function useNow(): Date {
  const now = useSyncExternalStore(subscribe, present);
  return use(StoppedTime) ?? now;
}
