import { expect, test } from "vitest";
import { browserWords } from "./browsers";

test("browsers are recognised, also those that claim to be others", () => {
  const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/141.0 Safari/537.36";
  expect(browserWords(chrome)).toBe("Chrome on Linux");
  expect(browserWords(`${chrome} Edg/141.0`)).toBe("Edge on Linux");
  expect(
    browserWords("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19 Safari/604.1"),
  ).toBe("Safari on iOS");
  expect(browserWords("Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko Firefox/140.0")).toBe(
    "Firefox on Windows",
  );
});

test("what is unknown is shown as it is", () => {
  expect(browserWords("my-script 1.0")).toBe("my-script 1.0");
  expect(browserWords("")).toBe("unknown browser");
});
