// How the build is cut into files, and what is made of them. `vite.config.ts` puts it together.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const IN_LIBRARIES = /node_modules[\\/](?!@mantine|@tabler|@floating-ui|uplot)/;
const IN_WIDGETS = /node_modules[\\/](@mantine|@tabler|@floating-ui)[\\/]/;

/**
 * A page would otherwise be dozens of files, each with a request of its own. `start` holds the frame
 * and the first page with all that only they need; the others hold what many pages share. Each page
 * is a file of its own, with what only it needs. `tests/browser/test_light.py` counts.
 */
export const groups = [
  { name: "libraries", test: IN_LIBRARIES, minShareCount: 3, priority: 3 },
  { name: "widgets", test: IN_WIDGETS, minShareCount: 25, priority: 2 },
  { name: "shared", test: /[\\/]src[\\/]/, minShareCount: 12, priority: 2 },
  {
    name: "start",
    test: /[\\/]src[\\/](main\.tsx|app[\\/](frame[\\/]Frame|pages[\\/]OverviewPage)\.tsx)$/,
    priority: 1,
  },
];

const STYLES = "node_modules/@mantine/core/styles";

/** Refuses a build that has a component of Mantine without its style sheet. */
export function completeStyles() {
  return {
    name: "complete-styles",
    apply: "build",
    async generateBundle(_, bundle) {
      const files = Object.values(bundle);
      const scripts = files.map((file) => file.code ?? "").join("\n");
      const sheets = files.map((file) => String(file.source ?? "")).join("\n");
      const names = (await readdir(STYLES)).filter((name) => /^\w+\.css$/.test(name));
      for (const name of names) {
        const [own] = /m_[0-9a-f]+/.exec(await readFile(join(STYLES, name), "utf8")) ?? [];
        if (own && scripts.includes(own) && !sheets.includes(own)) {
          this.error(`src/app/styles.ts does not import @mantine/core/styles/${name}`);
        }
      }
    },
  };
}

const WITH_BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
const COMPRESSIBLE = /\.(js|css|html|svg)$/;

/** Writes a `.br` and a `.gz` beside each file of the build, which the service prefers. */
export function compressed() {
  let folder;
  return {
    name: "compressed",
    apply: "build",
    configResolved(config) {
      folder = config.build.outDir;
    },
    async closeBundle() {
      const files = await readdir(folder, { recursive: true });
      await Promise.all(
        files
          .filter((file) => COMPRESSIBLE.test(file))
          .map(async (file) => {
            const path = join(folder, file);
            const bytes = await readFile(path);
            await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, WITH_BROTLI));
            await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }));
          }),
      );
    },
  };
}
