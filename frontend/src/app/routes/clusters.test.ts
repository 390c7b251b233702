import { createMemoryHistory, createRouter } from "@tanstack/react-router";
import { expect, test } from "vitest";
import { clusterRoutes } from "./clusters";
import { frame, root } from "./frame";

const routeTree = root.addChildren([frame.addChildren(clusterRoutes)]);
const GROUP = "/clusters/$clusterId/groups/$group";

/** Makes a router whose window was opened at an address. */
const routerAt = (address: string) =>
  createRouter({ routeTree, history: createMemoryHistory({ initialEntries: [address] }) });

/** Returns the path that a browser requests for a link. */
const asked = (href: string): string => new URL(href, "http://console.example").pathname;

test.each([
  ...["plain", "a/b", "a/", "/a", "/", "//", "a//b", "a/reset-offsets", "reset-offsets"],
  ...["a%2Fb", "%2F", "a%b", "%", "%25", "%E9", "a?b", "a#b", "a&b=c", "a+b", "a:b", "a;b", "a\\b"],
  ...[".", "..", "...", "~", "~.", "~..", "~~..", "../..", "a/../b", ".a"],
  ...["a b", " ", " a ", "a\tb", "a\nb", "é/ü", "名前", "😀", "\"<>`{}|^[]'", "$group", "{$group}"],
])("a link to the group %j leads to it, also when its page is loaded again", (name) => {
  const params = { clusterId: "cl_a", group: name };
  const { href } = routerAt("/").buildLocation({ to: GROUP, params });
  for (const address of [href, asked(href)]) {
    const router = routerAt(address);
    const match = router.matchRoutes(router.latestLocation).at(-1);
    expect(match?.routeId).toBe("/frame" + GROUP);
    expect(match?.params).toEqual(params);
  }
});
