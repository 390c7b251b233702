import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** Where the back end listens while `npm run dev` serves the console by itself. */
const backend = process.env.FRESHET_URL ?? "http://127.0.0.1:8080";

// The tools' configuration files are the one place that must export by default.
export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: { proxy: { "/api": backend, "/readyz": backend, "/healthz": backend } },
  build: { target: "es2023", sourcemap: false },
  test: { environment: "node", include: ["src/**/*.test.ts"] },
});
