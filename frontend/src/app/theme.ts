import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

/** The one accent: a blue of deep water. Index 7 carries white text with AA contrast. */
const water: MantineColorsTuple = [
  "#e8f6fb",
  "#cfe9f3",
  "#a2d3e6",
  "#70bcd8",
  "#48a7ca",
  "#2b93b9",
  "#157fa5",
  "#0b6a8b",
  "#075872",
  "#03455a",
];

const gray: MantineColorsTuple = [
  "#f8f9fa",
  "#f1f3f5",
  "#e6e9ec",
  "#d8dde1",
  "#c1c8ce",
  "#98a2aa",
  "#6c7780",
  "#525c65",
  "#363f46",
  "#1b2227",
];

const dark: MantineColorsTuple = [
  "#e3e7ea",
  "#b9c1c7",
  "#98a3ab",
  "#6f7a83",
  "#3b444b",
  "#2b3238",
  "#1c2227",
  "#14191d",
  "#0f1316",
  "#0a0d0f",
];

const sans =
  'Inter, "Segoe UI", -apple-system, BlinkMacSystemFont, "Helvetica Neue", Arial, sans-serif';
const mono =
  'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace';

export const theme = createTheme({
  primaryColor: "water",
  primaryShade: { light: 7, dark: 6 },
  autoContrast: true,
  colors: { water, gray, dark },
  fontFamily: sans,
  fontFamilyMonospace: mono,
  defaultRadius: "sm",
  radius: { xs: "3px", sm: "5px", md: "8px", lg: "12px", xl: "20px" },
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  lineHeights: { xs: "1.35", sm: "1.45", md: "1.5", lg: "1.5", xl: "1.4" },
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { size: "xs" } },
    TextInput: { defaultProps: { size: "sm" } },
    PasswordInput: { defaultProps: { size: "sm" } },
    InputWrapper: { styles: { description: { fontSize: 12 }, error: { fontSize: 12 } } },
    Radio: { styles: { description: { fontSize: 12 }, label: { fontSize: 13 } } },
    SegmentedControl: { styles: { root: { backgroundColor: "var(--hover)" } } },
    Switch: { styles: { label: { fontSize: 13 } } },
    Tooltip: { defaultProps: { openDelay: 300, withArrow: true } },
    Drawer: {
      defaultProps: { position: "right", size: 460 },
      styles: { title: { fontSize: 15, fontWeight: 600 } },
    },
    Modal: {
      defaultProps: { centered: true },
      styles: { title: { fontSize: 15, fontWeight: 600 } },
    },
  },
});

/** Both themes by hand: greys of their own, and text that keeps AA contrast on each of them. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "#ffffff",
    "--mantine-color-text": "#14191d",
    "--mantine-color-dimmed": "#56616a",
    "--mantine-color-placeholder": "#6c7780",
    "--mantine-color-anchor": "#0b6a8b",
    "--mantine-color-error": "#b92c27",
    "--mantine-color-default-border": "#d8dde1",
    "--page": "#fbfcfc",
    "--surface": "#ffffff",
    "--sunken": "#f4f6f7",
    "--rail": "#f4f6f7",
    "--line": "#e4e8eb",
    "--hover": "#f0f4f6",
    "--selected": "#e3f1f7",
    "--accent": "#0b6a8b",
    "--running": "#1a7a48",
    "--waking": "#8f5f00",
    "--asleep": "#4a6482",
    "--suspended": "#6849b5",
    "--failed": "#b92c27",
    "--quiet": "#56616a",
  },
  dark: {
    "--mantine-color-body": "#14191d",
    "--mantine-color-text": "#e3e7ea",
    "--mantine-color-dimmed": "#98a3ab",
    "--mantine-color-placeholder": "#88939b",
    "--mantine-color-anchor": "#62bcdc",
    "--mantine-color-error": "#f4827c",
    "--mantine-color-default": "#1c2227",
    "--mantine-color-default-hover": "#242b31",
    "--mantine-color-default-border": "#343d44",
    "--page": "#0f1316",
    "--surface": "#14191d",
    "--sunken": "#101417",
    "--rail": "#0c1012",
    "--line": "#252c32",
    "--hover": "#1b2126",
    "--selected": "#13303c",
    "--accent": "#62bcdc",
    "--running": "#4fc287",
    "--waking": "#e0a83c",
    "--asleep": "#93adc9",
    "--suspended": "#ab97f3",
    "--failed": "#f4827c",
    "--quiet": "#98a3ab",
  },
});
