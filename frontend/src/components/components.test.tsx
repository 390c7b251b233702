import { MantineProvider } from "@mantine/core";
import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactElement } from "react";
import { expect, test, vi } from "vitest";
import { Problem } from "@/lib/api/problem";
import { ConfirmByName } from "./ConfirmByName";
import { CopyText } from "./CopyText";
import { type Column, DataTable } from "./DataTable";
import { ErrorPanel } from "./ErrorPanel";
import { GuardedButton } from "./GuardedButton";
import { Moment } from "./Moment";
import { PhaseMark } from "./PhaseMark";
import { SecretOnce } from "./SecretOnce";

function show(part: ReactElement): ReturnType<typeof userEvent.setup> {
  render(<MantineProvider env="test">{part}</MantineProvider>);
  return userEvent.setup({ delay: null });
}

interface Row {
  name: string;
  size: number;
}

const COLUMNS: Column<Row>[] = [
  { id: "name", header: "Name", sortBy: (row) => row.name, cell: (row) => row.name },
  { id: "size", header: "Size", sortBy: (row) => row.size, cell: (row) => row.size },
  { id: "note", header: "Note", cell: () => "–" },
];
const ROWS: Row[] = [
  { name: "b", size: 10 },
  { name: "a", size: 9 },
  { name: "c", size: 100 },
];

function names(): (string | undefined)[] {
  const [, ...rows] = screen.getAllByRole("row");
  return rows.map((row) => within(row).getAllByRole("cell")[0]?.textContent);
}

test("a table sorts by its headings, numbers as numbers, and says in which order", async () => {
  const user = show(
    <DataTable label="Sizes" columns={COLUMNS} rows={ROWS} rowId={(row) => row.name} />,
  );
  expect(names()).toEqual(["b", "a", "c"]);
  const heading = screen.getByRole("columnheader", { name: "Size" });
  expect(heading).not.toHaveAttribute("aria-sort");
  await user.click(within(heading).getByRole("button"));
  expect(names()).toEqual(["a", "b", "c"]);
  expect(heading).toHaveAttribute("aria-sort", "ascending");
  await user.click(within(heading).getByRole("button"));
  expect(names()).toEqual(["c", "b", "a"]);
  expect(heading).toHaveAttribute("aria-sort", "descending");
  const note = screen.getByRole("columnheader", { name: "Note" });
  expect(within(note).queryByRole("button")).toBeNull();
});

test("a table draws at most `shown` of the sorted rows", () => {
  const initialSort = [{ id: "size", desc: true }];
  const rowId = (row: Row): string => row.name;
  show(
    <DataTable label="Sizes" {...{ rowId, initialSort }} columns={COLUMNS} rows={ROWS} shown={2} />,
  );
  expect(names()).toEqual(["c", "b"]);
});

test("a long name is cut in its middle, and is whole in the page", () => {
  const name = `${"long-".repeat(40)}end-of-it`;
  show(
    <DataTable
      label="Sizes"
      columns={COLUMNS}
      rows={[{ name, size: 1 }]}
      rowId={(row) => row.name}
    />,
  );
  expect(names()).toEqual([name]);
  const [cell] = screen.getAllByRole("cell");
  expect(cell?.querySelector("[title]")).toHaveAttribute("title", name);
  expect(cell?.querySelectorAll("span")[1]).toHaveTextContent("d-of-it");
});

test("a sentence is shown whole, where a name would be cut", () => {
  const sentence = "Creating another topic is refused with POLICY_VIOLATION until one is deleted.";
  const columns: Column<Row>[] = [
    { id: "name", header: "Effect", isSentence: true, cell: (row) => row.name },
  ];
  const rows = [{ name: `${sentence}\u202e`, size: 1 }];
  show(<DataTable label="Limits" columns={columns} rows={rows} rowId={(row) => row.name} />);
  const [cell] = screen.getAllByRole("cell");
  expect(cell).toHaveTextContent(`${sentence}\\u202e`);
  expect(cell?.querySelector("[title]")).toBeNull();
});

test("what cannot be seen in a cell is written as an escape, also within a link", () => {
  const columns: Column<Row>[] = [
    { id: "name", header: "Name", cell: (row) => <a href="#here">{row.name}</a> },
  ];
  const rows = [{ name: "\u202egnp.exe\u0000", size: 1 }];
  show(<DataTable label="Sizes" columns={columns} rows={rows} rowId={(row) => row.name} />);
  expect(names()).toEqual(["\\u202egnp.exe\\x00"]);
  expect(screen.getByRole("link")).toBeVisible();
});

test("a table of thousands draws some, and more when they are asked for", async () => {
  const rows = Array.from({ length: 1_200 }, (_, size) => ({ name: String(size), size }));
  const user = show(
    <DataTable label="Sizes" columns={COLUMNS} rows={rows} rowId={(row) => row.name} />,
  );
  expect(names()).toHaveLength(500);
  expect(screen.getByText(/^500 of 1\s200 rows are shown/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Show more" }));
  expect(names()).toHaveLength(1_000);
  expect(screen.queryByText(/This list is cut/)).toBeNull();
});

test("a list that was cut says so", () => {
  const rows = Array.from({ length: 5_001 }, (_, size) => ({ name: String(size), size }));
  show(<DataTable label="Sizes" columns={COLUMNS} rows={rows} rowId={(row) => row.name} />);
  expect(screen.getByText(/^This list is cut: it has more than 5\s000 rows/)).toBeVisible();
});

test("a table that loads is busy, and keeps its columns", () => {
  show(<DataTable label="Sizes" columns={COLUMNS} rows={undefined} rowId={(row) => row.name} />);
  expect(screen.getByRole("table", { busy: true })).toBeVisible();
  expect(screen.getAllByRole("columnheader")).toHaveLength(3);
});

test("nothing is destroyed before its name was typed, letter by letter", async () => {
  const onConfirm = vi.fn();
  const user = show(
    <ConfirmByName
      opened
      onClose={vi.fn()}
      onConfirm={onConfirm}
      name="Orders"
      title="Delete it"
      action="Delete"
      pending={false}
      error={null}
    >
      It goes.
    </ConfirmByName>,
  );
  const typed = await screen.findByRole("textbox");
  for (const wrong of ["orders", "Orders ", "Order"]) {
    await user.clear(typed);
    await user.type(typed, `${wrong}{Enter}`);
    expect(screen.getByRole("button", { name: "Delete" })).toBeDisabled();
  }
  expect(onConfirm).not.toHaveBeenCalled();
  await user.clear(typed);
  await user.type(typed, "Orders{Enter}");
  expect(onConfirm).toHaveBeenCalledOnce();
});

test("a button that is refused takes the focus, says why, and does nothing", async () => {
  const onClick = vi.fn();
  const user = show(
    <GuardedButton refused="Owners may." onClick={onClick}>
      Close
    </GuardedButton>,
  );
  await user.tab();
  const button = screen.getByRole("button", { name: "Close" });
  expect(button).toHaveFocus();
  expect(button).toHaveAccessibleDescription("Owners may.");
  await user.keyboard("{Enter}");
  await user.click(button);
  expect(onClick).not.toHaveBeenCalled();
});

test("an error says what happened, what was kept, what to do, and under which request", () => {
  const error = new Problem({
    status: 422,
    code: "invalid",
    title: "Not valid",
    detail: "The body is not valid",
    requestId: "req_1",
    errors: [{ pointer: "/spec/idle_timeout_s", detail: "At least 30." }],
    method: "PATCH",
  });
  show(<ErrorPanel error={error} what="It was not saved" />);
  const alert = screen.getByRole("alert");
  expect(alert).toHaveTextContent("It was not saved");
  expect(alert).toHaveTextContent("The body is not valid. idle timeout s: At least 30.");
  expect(alert).toHaveTextContent("Nothing was changed. Correct what is named above");
  expect(alert).toHaveTextContent("req_1");
  expect(screen.queryByRole("button", { name: "Try again" })).toBeNull();
});

test("a text is copied as it is, and that is said", async () => {
  const user = show(<CopyText value="127.0.0.1:9092" what="the address" />);
  await user.click(screen.getByRole("button", { name: "Copy the address" }));
  expect(await screen.findByRole("button", { name: "Copied" })).toBeVisible();
  expect(await navigator.clipboard.readText()).toBe("127.0.0.1:9092");
});

test("a secret can be copied until somebody says that it was", async () => {
  const onDone = vi.fn();
  const user = show(<SecretOnce values={[["Password", "p-1"]]} onDone={onDone} />);
  expect(screen.getByText("p-1")).toBeVisible();
  expect(screen.getByRole("button", { name: "Copy password" })).toBeVisible();
  await user.click(screen.getByRole("button", { name: "I have copied it" }));
  expect(onDone).toHaveBeenCalledOnce();
});

test("an instant is shown as how long ago it was, and null as a dash", () => {
  show(
    <>
      <Moment at="2026-11-21T15:30:00Z" />
      <Moment at={null} />
    </>,
  );
  const shown = screen.getByText("30 min ago");
  expect(shown).toHaveAttribute("datetime", "2026-11-21T15:30:00Z");
  expect(screen.getByText("–")).toBeVisible();
});

test("a state is a word and a shape, not a colour alone", () => {
  show(
    <>
      <PhaseMark phase="asleep" />
      <PhaseMark phase="failed" />
    </>,
  );
  const [asleep, failed] = [screen.getByText("Asleep"), screen.getByText("Failed")];
  const shapes = [asleep, failed].map((mark) => mark.querySelector("path")?.getAttribute("d"));
  expect(shapes[0]).toBeTruthy();
  expect(shapes[0]).not.toBe(shapes[1]);
});
