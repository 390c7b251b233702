import { type MantineColorScheme, SegmentedControl, useMantineColorScheme } from "@mantine/core";
import type { ReactElement } from "react";

const CHOICES: { value: MantineColorScheme; label: string }[] = [
  { value: "auto", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** The choice of the light or dark theme, which is kept in this browser. */
export function ThemeChoice(): ReactElement {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <SegmentedControl
      size="xs"
      aria-label="Theme"
      data={CHOICES}
      value={colorScheme}
      onChange={(value) => {
        setColorScheme(value as MantineColorScheme);
      }}
    />
  );
}
