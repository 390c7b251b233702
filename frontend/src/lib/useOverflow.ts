import { type RefCallback, useCallback, useState } from "react";

/**
 * Returns a ref, and whether the content of its element is wider than the element. An element that
 * scrolls must be reachable by keyboard; any other would only be a needless stop.
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
