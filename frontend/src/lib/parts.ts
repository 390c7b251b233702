/** A part of the console, a file that a page needs, that could not be loaded. */
export class LostPart extends Error {
  constructor(cause: unknown) {
    super("A part of the console could not be loaded.", { cause });
    this.name = "LostPart";
  }
}

/**
 * Loads a part of the console. It is lost where the service was replaced by another version since
 * the page was opened, or does not answer.
 */
export async function loadPart<Module>(load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    throw new LostPart(error);
  }
}

const KEY = "freshet.reloaded";
/** Who is brought to a page that fails again within this time is not sent round in circles. */
const APART_MS = 30_000;

/** Returns whether the page was loaded anew by itself a moment ago; notes that it will be now. */
function noteReload(): boolean {
  const before = Number(sessionStorage.getItem(KEY) ?? 0);
  sessionStorage.setItem(KEY, String(Date.now()));
  return Math.abs(Date.now() - before) < APART_MS;
}

/**
 * Loads the page anew, which brings the service's present version, if the service answers: else the
 * browser would show an error of its own in place of the console. `byItself`: nobody asked for it,
 * and so it is done once.
 */
export async function reloadPage(byItself: boolean): Promise<void> {
  const answered = await fetch("/", { cache: "no-store" }).then(
    (answer) => answer.ok,
    () => false,
  );
  if (!answered || (byItself && noteReload())) return;
  location.reload();
}
