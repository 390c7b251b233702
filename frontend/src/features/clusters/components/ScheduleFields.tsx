import { Button, Chip, Fieldset, Group, Input, Select, Stack, TextInput } from "@mantine/core";
import { type ReactElement, useMemo } from "react";
import type { Schedule } from "@/lib/api/types";
import { DAYS, DAY_NAMES, type Day, officeHours, scheduleProblem, zones } from "../schedules";

interface Props {
  value: readonly Schedule[];
  onChange: (schedules: Schedule[]) => void;
  /** The error of the service about the schedules. */
  error?: string;
}

/** The fields of a cluster's schedules: times of the week in which it stays awake. */
export function ScheduleFields({ value, onChange, error }: Props): ReactElement {
  const used = value.map((schedule) => schedule.time_zone).join(" ");
  const names = useMemo(() => zones(used.split(" ").filter(Boolean)), [used]);
  return (
    <Input.Wrapper
      component="div"
      label="Hours awake"
      labelElement="div"
      description="In these hours it stays awake; at others it sleeps without a connected client"
      error={error}
    >
      <Stack gap="sm" mt="xs">
        {value.map((schedule, index) => (
          <OneSchedule
            key={index}
            number={index + 1}
            schedule={schedule}
            zoneNames={names}
            onChange={(changed) => {
              onChange(value.map((other, at) => (at === index ? changed : other)));
            }}
            onRemove={() => {
              onChange(value.filter((_, at) => at !== index));
            }}
          />
        ))}
        <div>
          <Button
            variant="default"
            size="xs"
            onClick={() => {
              onChange([...value, officeHours()]);
            }}
          >
            Add hours
          </Button>
        </div>
      </Stack>
    </Input.Wrapper>
  );
}

interface OneProps {
  number: number;
  schedule: Schedule;
  zoneNames: string[];
  onChange: (schedule: Schedule) => void;
  onRemove: () => void;
}

function OneSchedule({ number, schedule, zoneNames, onChange, onRemove }: OneProps): ReactElement {
  const problem = scheduleProblem(schedule);
  return (
    <Fieldset legend={`Hours ${String(number)}`}>
      <Stack gap="xs">
        <Input.Wrapper component="div" label="Days" labelElement="div" error={problem?.days}>
          <Chip.Group
            multiple
            value={schedule.days}
            onChange={(days) => {
              onChange({ ...schedule, days: DAYS.filter((day) => days.includes(day)) as Day[] });
            }}
          >
            <Group gap={4} mt={4}>
              {DAYS.map((day) => (
                <Chip key={day} value={day} size="xs">
                  {DAY_NAMES[day]}
                </Chip>
              ))}
            </Group>
          </Chip.Group>
        </Input.Wrapper>
        <Group gap="xs" align="flex-start">
          <TextInput
            label="From"
            w={90}
            error={problem?.start}
            value={schedule.start}
            onChange={(event) => {
              onChange({ ...schedule, start: event.currentTarget.value });
            }}
          />
          <TextInput
            label="Until"
            w={90}
            error={problem?.end}
            value={schedule.end}
            onChange={(event) => {
              onChange({ ...schedule, end: event.currentTarget.value });
            }}
          />
          <Select
            label="Time zone"
            style={{ flex: "1 1 180px" }}
            data={zoneNames}
            searchable
            allowDeselect={false}
            limit={100}
            value={schedule.time_zone}
            onChange={(time_zone) => {
              if (time_zone !== null) onChange({ ...schedule, time_zone });
            }}
          />
        </Group>
        <div>
          <Button variant="subtle" color="red" size="compact-xs" onClick={onRemove}>
            Remove these hours
          </Button>
        </div>
      </Stack>
    </Fieldset>
  );
}
