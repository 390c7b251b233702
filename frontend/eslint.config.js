import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

const TESTS = ["**/*.test.{ts,tsx}"];
const testing = { group: ["@/testing/**"], message: "Only tests import from testing." };

/** Imports go one way: lib → components → features → app. Tests stand above. See README.md. */
const direction = (folder, patterns) => [
  {
    files: [`src/${folder}/**`],
    rules: { "no-restricted-imports": ["error", { patterns: [...patterns, testing] }] },
  },
  {
    files: TESTS.map((pattern) => `src/${folder}/${pattern}`),
    rules: { "no-restricted-imports": ["error", { patterns }] },
  },
];

const above = (folder, ...targets) => ({
  group: targets.map((target) => `@/${target}/**`),
  message: `${folder} may not import from ${targets.join(" or ")}.`,
});

export default tseslint.config(
  { ignores: ["dist", "src/lib/api/schema.d.ts"] },
  ...tseslint.configs.strict,
  hooks.configs.flat["recommended-latest"],
  {
    files: ["src/**/*.{ts,tsx}"],
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/explicit-module-boundary-types": "error",
      "max-lines": ["error", { max: 300, skipBlankLines: true }],
      "max-lines-per-function": ["error", { max: 90, skipBlankLines: true, skipComments: true }],
      "no-restricted-syntax": [
        "error",
        { selector: "ExportDefaultDeclaration", message: "Export by name." },
        { selector: "ExportAllDeclaration", message: "No barrel files." },
        { selector: "ExportNamedDeclaration[source]", message: "No barrel files." },
      ],
    },
  },
  {
    // The types of query options are inferred: writing them out would repeat the whole query.
    files: ["src/features/*/api/**"],
    rules: { "@typescript-eslint/explicit-module-boundary-types": "off" },
  },
  {
    // There is no React Compiler here, so nothing is memoized behind the virtualizer's back.
    files: ["src/features/messages/components/MessageGrid.tsx"],
    rules: { "react-hooks/incompatible-library": "off" },
  },
  {
    // Vitest takes an environment by its default export.
    files: ["src/testing/environment.ts"],
    rules: { "no-restricted-syntax": "off" },
  },
  ...direction("lib", [above("lib", "components", "features", "app")]),
  ...direction("components", [above("components", "features", "app")]),
  ...direction("features", [
    above("A feature", "app", "features"),
    {
      group: ["../../*", "../../**"],
      message: "A feature imports its own files by relative path, and no other feature.",
    },
  ]),
  ...direction("app", []),
);
