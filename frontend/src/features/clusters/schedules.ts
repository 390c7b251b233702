import type { Schedule } from "@/lib/api/types";

export const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Day = (typeof DAYS)[number];

export const DAY_NAMES: Record<Day, string> = {
  mon: "Mon",
  tue: "Tue",
  wed: "Wed",
  thu: "Thu",
  fri: "Fri",
  sat: "Sat",
  sun: "Sun",
};

/** Returns the default of a new schedule: office hours in the person's time zone. */
export function officeHours(): Schedule {
  return {
    days: ["mon", "tue", "wed", "thu", "fri"],
    start: "07:00",
    end: "19:00",
    time_zone: localZone(),
  };
}

export function localZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** Returns all time zones that the browser knows, and those in `used`. */
export function zones(used: readonly string[]): string[] {
  return [...new Set(["UTC", ...Intl.supportedValuesOf("timeZone"), ...used])].sort();
}

const CLOCK = /^([01][0-9]|2[0-3]):[0-5][0-9]$/;

/** Returns what is wrong with a schedule, by field; null where nothing is. */
export function scheduleProblem(
  schedule: Schedule,
): Partial<Record<keyof Schedule, string>> | null {
  const problem: Partial<Record<keyof Schedule, string>> = {};
  if (schedule.days.length === 0) problem.days = "Choose a day";
  if (!CLOCK.test(schedule.start)) problem.start = "Like 07:00";
  if (!CLOCK.test(schedule.end) && schedule.end !== "24:00") problem.end = "Like 19:00 or 24:00";
  return Object.keys(problem).length > 0 ? problem : null;
}

/** "Mon–Fri 07:00–19:00 Europe/Zurich" */
export function scheduleWords({ days, start, end, time_zone }: Schedule): string {
  return `${dayWords(days)} ${start}–${end} ${time_zone}`;
}

function dayWords(days: readonly Day[]): string {
  if (days.length === DAYS.length) return "Daily";
  const runs: Day[][] = [];
  for (const day of DAYS.filter((name) => days.includes(name))) {
    const run = runs.at(-1);
    const last = run?.at(-1);
    if (run && last && DAYS.indexOf(day) === DAYS.indexOf(last) + 1) run.push(day);
    else runs.push([day]);
  }
  return runs
    .map((run) => {
      const [first, last] = [run[0], run.at(-1)];
      if (!first || !last) return "";
      if (first === last) return DAY_NAMES[first];
      return `${DAY_NAMES[first]}${run.length > 2 ? "–" : ", "}${DAY_NAMES[last]}`;
    })
    .join(", ");
}
