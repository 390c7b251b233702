/** Adds the parts of a browser that happy-dom lacks. It runs before any module of the console. */
import { EventSource } from "eventsource";
import { vi } from "vitest";
import "./server";

// The present time is that of the examples in the OpenAPI file, and does not advance.
vi.useFakeTimers({ toFake: ["Date"], now: new Date("2026-11-21T16:00:00Z") });

// The console asks by path alone, which Node's own Request does not take. It is replaced once in a
// process: modules keep the one that they were loaded with.
class PathRequest extends Request {
  constructor(input: RequestInfo | URL, init?: RequestInit) {
    super(typeof input === "string" ? new URL(input, location.href) : input, init);
  }
}
if (Request.name !== PathRequest.name) globalThis.Request = PathRequest;

/** There is no layout here, so no size ever changes. */
class NoResizes implements ResizeObserver {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}

vi.stubGlobal("EventSource", EventSource);
vi.stubGlobal("ResizeObserver", NoResizes);
Object.assign(document.defaultView ?? {}, { ResizeObserver: NoResizes });
vi.stubGlobal("scrollTo", () => undefined);
vi.stubGlobal("matchMedia", (media: string) => ({
  matches: media.includes("reduce"),
  media,
  addEventListener: () => undefined,
  removeEventListener: () => undefined,
}));
Object.defineProperty(document, "fonts", { value: new EventTarget(), configurable: true });
Element.prototype.scrollIntoView = () => undefined;
// A list draws the rows that its height has room for, and happy-dom lays nothing out.
Object.defineProperty(HTMLElement.prototype, "clientHeight", {
  get: () => 600,
  configurable: true,
});
Object.defineProperty(HTMLElement.prototype, "clientWidth", {
  get: () => 1000,
  configurable: true,
});
