/** A browser for tests: happy-dom's window, with the requests and answers of Node's own `fetch`. */
import { Window } from "happy-dom";
import { type Environment, populateGlobal } from "vitest/runtime";

// What modules keep of it stays valid from file to file: they are loaded once in a process.
const window = new Window({ url: "http://localhost:3000", width: 1280, height: 860 });

const environment: Environment = {
  name: "browser",
  viteEnvironment: "client",
  setup(global: typeof globalThis) {
    const { keys, originals } = populateGlobal(global, window, { bindFunctions: true });
    return {
      teardown() {
        for (const key of keys) Reflect.deleteProperty(global, key);
        for (const [key, value] of originals) Reflect.set(global, key, value);
      },
    };
  },
};

// Vitest takes an environment by its default export alone.
export default environment;
