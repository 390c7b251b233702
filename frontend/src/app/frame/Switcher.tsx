import { Combobox, ScrollArea, UnstyledButton, useCombobox } from "@mantine/core";
import { IconSelector } from "@tabler/icons-react";
import { type ReactElement, useState } from "react";
import { Name } from "@/components/Name";
import { legible } from "@/lib/format/legible";
import classes from "./Switcher.module.css";

interface Props {
  /** The noun of what is switched, such as "cluster". */
  what: string;
  value: string;
  options: { value: string; label: string }[];
  onPick: (value: string) => void;
}

const SHOWN_MAX = 50;

/** A breadcrumb that opens a list of its siblings. Typing filters the list. */
export function Switcher({ what, value, options, onPick }: Props): ReactElement {
  const [search, setSearch] = useState("");
  const combobox = useCombobox({
    onDropdownClose: () => {
      combobox.resetSelectedOption();
      combobox.focusTarget();
      setSearch("");
    },
    onDropdownOpen: () => {
      combobox.focusSearchInput();
    },
  });
  const needle = search.trim().toLowerCase();
  const shown = options.filter((o) => o.label.toLowerCase().includes(needle)).slice(0, SHOWN_MAX);
  const label = options.find((option) => option.value === value)?.label ?? value;
  return (
    <Combobox
      store={combobox}
      width={280}
      position="bottom-start"
      shadow="md"
      onOptionSubmit={(picked) => {
        combobox.closeDropdown();
        onPick(picked);
      }}
    >
      <Combobox.Target withAriaAttributes={false}>
        <UnstyledButton
          className={classes.button}
          aria-label={`Switch ${what}: ${legible(label)}`}
          aria-haspopup="listbox"
          onClick={() => {
            combobox.toggleDropdown();
          }}
        >
          <span className={classes.label}>
            <Name text={label} />
          </span>
          <IconSelector size={13} aria-hidden="true" />
        </UnstyledButton>
      </Combobox.Target>
      <Combobox.Dropdown>
        <Combobox.Search
          value={search}
          onChange={(event) => {
            setSearch(event.currentTarget.value);
            combobox.selectFirstOption();
          }}
          placeholder={`Find a ${what}`}
          aria-label={`Find a ${what}`}
        />
        <Combobox.Options>
          <ScrollArea.Autosize mah={280} type="auto">
            {shown.map((option) => (
              <Combobox.Option
                key={option.value}
                value={option.value}
                active={option.value === value}
              >
                <Name text={option.label} />
              </Combobox.Option>
            ))}
            {shown.length === 0 && <Combobox.Empty>Nothing has this name</Combobox.Empty>}
          </ScrollArea.Autosize>
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}
