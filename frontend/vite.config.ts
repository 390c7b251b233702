import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { completeStyles, compressed, groups } from "./scripts/bundle.js";

/** Where the back end listens while `npm run dev` serves the console by itself. */
const backend = process.env.FRESHET_URL ?? "http://127.0.0.1:8080";

// The tools' configuration files are the one place that must export by default.
export default defineConfig({
  plugins: [react(), completeStyles(), compressed()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: { proxy: { "/api": backend, "/readyz": backend, "/healthz": backend } },
  build: {
    target: "es2023",
    sourcemap: false,
    rolldownOptions: { output: { codeSplitting: { groups } } },
  },
  test: {
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "modules", include: ["src/**/*.test.ts"] } },
      {
        extends: true,
        // The API's description is what the mocked answers are made of.
        server: { fs: { allow: [".", "../docs/reference"] } },
        test: {
          name: "components",
          environment: "./src/testing/environment.ts",
          include: ["src/**/*.test.tsx"],
          setupFiles: ["src/testing/browser.ts", "src/testing/setup.ts"],
          // The files of a process share their modules, of which a page loads hundreds. What tests
          // share besides is put back by the set-up after each.
          isolate: false,
          testTimeout: 30_000,
        },
      },
    ],
  },
});
