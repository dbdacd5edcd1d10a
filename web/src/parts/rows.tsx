// A list of rows of which only the visible ones are in the document. In: the number of rows, columns, and a function
// that renders the cells of one. Out: a grid for the keyboard and screen readers; the selected row stays in sight.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows that are rendered above and below the visible ones. */
const MARGIN = 6;

export interface Column {
  name: string;
  class: string;
}

interface Props {
  id: string;
  label: string;
  columns: Column[];
  count: number;
  rowHeight: number;
  selected: number;
  /** The cells of a row, one for each column; null while the row is being loaded. */
  renderRow(index: number): ComponentChildren[] | null;
  onSelect(index: number): void;
  onOpen(index: number): void;
  /** The rendered rows have changed: from `first` up to `last`, not included. */
  onRange?(first: number, last: number): void;
}

export function Rows(props: Props): JSX.Element {
  const { id, count, rowHeight, selected, columns } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = scroller.current;
    if (!element || selected < 0) return;
    // The heading lies over the first `rowHeight` pixels.
    const [above, below] = [selected * rowHeight, (selected + 2) * rowHeight];
    if (above < element.scrollTop) element.scrollTop = above;
    else if (below > element.scrollTop + element.clientHeight) element.scrollTop = below - element.clientHeight;
  }, [selected, rowHeight]);

  const first = Math.max(0, Math.floor(top / rowHeight) - MARGIN);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + MARGIN);
  useEffect(() => props.onRange?.(first, last), [first, last]);

  const rows: JSX.Element[] = [];
  for (let index = first; index < last; index += 1) {
    const cells = props.renderRow(index);
    rows.push(
      <div
        key={index}
        id={`${id}-${index}`}
        role="row"
        class={index === selected ? "row selected" : "row"}
        aria-rowindex={index + 2}
        aria-selected={index === selected}
        style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
        onClick={() => {
          props.onSelect(index);
          props.onOpen(index);
        }}
      >
        {columns.map((column, at) => (
          <div key={column.name} role="gridcell" class={`cell ${column.class}`}>
            {cells ? cells[at] : at === 0 && <span class="muted">…</span>}
          </div>
        ))}
      </div>,
    );
  }

  return (
    <div
      ref={scroller}
      class="rows"
      role="grid"
      tabIndex={0}
      aria-label={props.label}
      aria-rowcount={count + 1}
      aria-activedescendant={selected >= first && selected < last ? `${id}-${selected}` : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div role="rowgroup" class="heading">
        <div role="row" class="row" aria-rowindex={1} style={{ height: `${rowHeight}px` }}>
          {columns.map((column) => (
            <div key={column.name} role="columnheader" class={`cell ${column.class}`}>
              {column.name}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="body" style={{ height: `${count * rowHeight}px` }}>
        {rows}
      </div>
    </div>
  );
}

/** The row that is `by` rows further, within the list. */
export function moveRow(selected: number, by: number, count: number): number {
  return Math.max(0, Math.min(count - 1, selected + by));
}
