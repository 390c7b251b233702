/** Leads the browser away from the console, to a page of another service. */
export function leaveFor(url: string): void {
  location.assign(url);
}
