// The timeline of a run. In: its bars. Out: a canvas that scrolls by rows and zooms in time, and a list of what it
// shows for screen readers.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { runPath } from "../api.ts";
import { AXIS_HEIGHT, ROW_HEIGHT, TimelinePicture } from "../canvas/timeline.ts";
import { formatDuration, formatPlural } from "../format.ts";
import { type Handlers, useKeys } from "../keys.ts";
import { now } from "../live.ts";
import { Empty, Loaded } from "../parts/load.tsx";
import { moveRow } from "../parts/rows.tsx";
import { useResource } from "../resource.ts";
import { changeRun, type RunRoute } from "../router.ts";
import { markOf } from "../states.ts";
import type { BarPart, Timeline } from "../types.ts";
import { useCanvas } from "./canvas.tsx";

const ZOOM_STEP = 1.4;
const LARGEST_ZOOM = 2000;
const PAN_STEP = 0.15;
const NARROW = 700;
/** How far in pixels the pointer may move in a click, and how many bars of a row are described. */
const CLICK_SLACK = 4;
const MOST_DESCRIBED = 5;

export function TimelineView({ route }: { route: RunRoute }): JSX.Element {
  const timeline = useResource<Timeline>(route.run, `${runPath(route.run)}/timeline`);
  return (
    <Loaded resource={timeline}>
      {(value) =>
        value.rows.length === 0 ? <Empty>No step has begun.</Empty> : <TimelineCanvas route={route} timeline={value} />
      }
    </Loaded>
  );
}

function TimelineCanvas({ route, timeline }: { route: RunRoute; timeline: Timeline }): JSX.Element {
  const [fold, setFold] = useState(true);
  const [selected, setSelected] = useState(0);
  const [top, setTop] = useState(0);
  const [zoom, setZoom] = useState({ zoom: 1, offset: 0 });
  const [size, setSize] = useState({ width: 0, height: 0 });
  const scroller = useRef<HTMLDivElement>(null);
  const grows = timeline.bars.some((bar) => bar[2] === null);
  // While something goes on, the axis grows with each tick.
  const end = grows ? Math.max(timeline.now, now.value) : timeline.now;
  const picture = useMemo(() => new TimelinePicture({ ...timeline, now: end }, fold), [timeline, fold, end]);

  const names = size.width < NARROW ? 120 : 220;
  const { ref } = useCanvas(({ context, width, height, ratio, colors }) => {
    if (width !== size.width || height !== size.height) setSize({ width, height });
    picture.draw(context, { width, height, top, names, ...zoom, selected }, colors, ratio);
  });

  const inspectRow = (row: number): void => {
    const label = timeline.rows[row];
    if (label !== undefined) changeRun({ step: label, agent: null, turn: null, view: "timeline" }, route.step !== null);
  };
  const selectRow = (row: number): void => {
    setSelected(row);
    const element = scroller.current;
    if (!element) return;
    const room = element.clientHeight - AXIS_HEIGHT;
    if (row * ROW_HEIGHT < element.scrollTop) element.scrollTop = row * ROW_HEIGHT;
    else if ((row + 1) * ROW_HEIGHT > element.scrollTop + room) element.scrollTop = (row + 1) * ROW_HEIGHT - room;
  };
  const moveSelection = (by: number): void => {
    const to = moveRow(selected, by, timeline.rows.length);
    selectRow(to);
    if (route.step !== null) inspectRow(to);
  };
  const pan = (by: number): void => setZoom((now) => limitZoom(now.zoom, now.offset + by / now.zoom));
  const zoomBy = (factor: number, part = 0.5): void => {
    setZoom((now) => {
      const next = Math.min(LARGEST_ZOOM, Math.max(1, now.zoom * factor));
      return limitZoom(next, now.offset + part / now.zoom - part / next);
    });
  };

  useEffect(() => {
    const row = route.step === null ? -1 : timeline.rows.indexOf(route.step);
    if (row >= 0) selectRow(row);
  }, [route.step]);

  const handlers: Handlers = {
    next: () => moveSelection(1),
    previous: () => moveSelection(-1),
    left: () => pan(-PAN_STEP),
    right: () => pan(PAN_STEP),
    open: () => inspectRow(selected),
    fold: () => setFold(!fold),
    zoomIn: () => zoomBy(ZOOM_STEP),
    zoomOut: () => zoomBy(1 / ZOOM_STEP),
    zoomReset: () => setZoom({ zoom: 1, offset: 0 }),
  };
  useKeys("view", handlers);
  const rowAt = (y: number): number | null => {
    const row = Math.floor((y - AXIS_HEIGHT + top) / ROW_HEIGHT);
    return y < AXIS_HEIGHT || row >= timeline.rows.length ? null : row;
  };
  usePointer(scroller, {
    names,
    pan,
    zoomBy,
    describe: (x, y) => {
      const row = rowAt(y);
      if (row === null) return "";
      const part = picture.partAt(row, x, { ...size, top, names, ...zoom, selected });
      return part ? `${picture.names[row]}: ${describePart(part, end)}` : describeRow(picture, row, end);
    },
    click: (y) => {
      const row = rowAt(y);
      if (row === null) return;
      selectRow(row);
      inspectRow(row);
    },
  });

  return (
    <section class="timeline" aria-label="Timeline">
      <div class="filters">
        <button type="button" class="chip" aria-pressed={fold} onClick={handlers.fold}>
          fold idle time <kbd>i</kbd>
        </button>
        <span class="muted">
          {formatPlural(timeline.rows.length, "row")}, {formatDuration((grows ? end : timeline.to) - timeline.from)}
          {timeline.left_out > 0 && `, ${formatPlural(timeline.left_out, "short bar")} left out`}
        </span>
        <span class="spacer" />
        <span class="choices">
          <button type="button" aria-label="Zoom in" onClick={handlers.zoomIn}>
            +
          </button>
          <button type="button" aria-label="Zoom out" onClick={handlers.zoomOut}>
            −
          </button>
          <button type="button" onClick={handlers.zoomReset}>
            All
          </button>
        </span>
      </div>
      <div class="timeline-scroll" ref={scroller} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
        <canvas ref={ref} aria-hidden="true" />
        <div class="spread" style={{ height: `${timeline.rows.length * ROW_HEIGHT + AXIS_HEIGHT}px` }} />
      </div>
      <RowList picture={picture} view={{ top, height: size.height }} selected={selected} end={end} />
    </section>
  );
}

function limitZoom(zoom: number, offset: number): { zoom: number; offset: number } {
  return { zoom, offset: Math.min(1 - 1 / zoom, Math.max(0, offset)) };
}

interface TimeMoves {
  /** The width of the names, left of the axis. */
  names: number;
  pan(by: number): void;
  zoomBy(factor: number, part: number): void;
  /** What is said of the row, or of the turn or tool in it, while the pointer rests there. */
  describe(x: number, y: number): string;
  click(y: number): void;
}

/** Pans and zooms in time by the pointer, and tells of the rows below it: a drag pans, the wheel with Ctrl or Shift zooms. */
function usePointer(ref: { current: HTMLElement | null }, moves: TimeMoves): void {
  const current = useRef(moves);
  current.current = moves;
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    let last: number | null = null;
    let moved = 0;
    const measureAxis = (): { left: number; width: number } => {
      const box = element.getBoundingClientRect();
      return { left: box.left + current.current.names, width: element.clientWidth - current.current.names };
    };
    const measureY = (event: PointerEvent): number => event.clientY - element.getBoundingClientRect().top;
    const startDrag = (event: PointerEvent): void => {
      last = event.clientX;
      moved = 0;
    };
    const continueDrag = (event: PointerEvent): void => {
      if (last === null || event.buttons === 0) {
        const x = event.clientX - element.getBoundingClientRect().left;
        element.title = current.current.describe(x, measureY(event));
        return;
      }
      const dx = event.clientX - last;
      last = event.clientX;
      moved += Math.abs(dx);
      if (event.pointerType === "mouse") current.current.pan(-dx / measureAxis().width);
    };
    const endDrag = (event: PointerEvent): void => {
      if (last !== null && moved < CLICK_SLACK) current.current.click(measureY(event));
      last = null;
    };
    const turnWheel = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const { left, width } = measureAxis();
      current.current.zoomBy(Math.exp(-(event.deltaY || event.deltaX) * 0.002), (event.clientX - left) / width);
    };
    element.addEventListener("pointerdown", startDrag);
    element.addEventListener("pointermove", continueDrag);
    element.addEventListener("pointerup", endDrag);
    element.addEventListener("wheel", turnWheel, { passive: false });
    return () => {
      element.removeEventListener("pointerdown", startDrag);
      element.removeEventListener("pointermove", continueDrag);
      element.removeEventListener("pointerup", endDrag);
      element.removeEventListener("wheel", turnWheel);
    };
  }, []);
}

interface ListProps {
  picture: TimelinePicture;
  view: { top: number; height: number };
  selected: number;
  end: number;
}

/** What the canvas shows, for screen readers; the keys of the page move through it. */
function RowList({ picture, view, selected, end }: ListProps): JSX.Element {
  const [first, last] = picture.visibleRows(view);
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
  const shown = rows.includes(selected) ? rows : [selected, ...rows];
  return (
    <ul
      class="hidden-tree"
      role="listbox"
      tabIndex={0}
      aria-label="Steps that the timeline shows"
      aria-activedescendant={`bar-${selected}`}
    >
      {shown.map((row) => (
        <li key={row} id={`bar-${row}`} role="option" aria-selected={row === selected}>
          {describeRow(picture, row, end)}
        </li>
      ))}
    </ul>
  );
}

function describeRow(picture: TimelinePicture, row: number, end: number): string {
  const bars = picture.barsOf(row).slice(-MOST_DESCRIBED);
  const parts = picture.partsOf(row);
  const turns = parts.filter((part) => part[3] === "turn").length;
  const counts = [
    ...(turns > 0 ? [formatPlural(turns, "turn")] : []),
    ...(parts.length > turns ? [formatPlural(parts.length - turns, "tool use")] : []),
  ];
  return [picture.names[row], ...bars.map((bar) => describeBar(bar, end)), ...counts].join(": ");
}

function describePart([, start, stop, kind, name, state]: BarPart, end: number): string {
  const what = kind === "turn" ? `turn of ${name}` : `tool ${name}`;
  return `${what}, ${markOf(state).word}, ${formatDuration((stop ?? end) - start)}`;
}

function describeBar([, start, stop, state, attempt]: Timeline["bars"][number], end: number): string {
  return `${markOf(state).word} for ${formatDuration((stop ?? end) - start)}, attempt ${attempt}`;
}
