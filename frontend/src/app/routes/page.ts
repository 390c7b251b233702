import { type AsyncRouteComponent, lazyRouteComponent } from "@tanstack/react-router";
import { loadPart } from "@/lib/parts";

/** Returns the component of a page, whose file is loaded when somebody goes to it. */
export function page<Module extends Record<string, unknown>, Name extends keyof Module & string>(
  load: () => Promise<Module>,
  name: Name,
): AsyncRouteComponent<object> {
  return lazyRouteComponent(() => loadPart(load), name) as AsyncRouteComponent<object>;
}
