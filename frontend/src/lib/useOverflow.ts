import { type RefCallback, useCallback, useState } from "react";

/**
 * Tells whether an element's content is wider than it: what scrolls must be reachable by keyboard,
 * and what does not would only be one more stop.
 */
export function useOverflow(): [RefCallback<HTMLElement>, boolean] {
  const [overflows, setOverflows] = useState(false);
  const ref = useCallback((element: HTMLElement | null) => {
    if (element === null) return;
    const look = (): void => {
      setOverflows(element.scrollWidth > element.clientWidth);
    };
    const observer = new ResizeObserver(look);
    observer.observe(element);
    if (element.firstElementChild) observer.observe(element.firstElementChild);
    return () => {
      observer.disconnect();
    };
  }, []);
  return [ref, overflows];
}
