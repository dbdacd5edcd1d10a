// The graph of a run. In: its layout and the states of its boxes. Out: a canvas with a selected box, and a list of what
// it shows for screen readers.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { runPath } from "../api.ts";
import { Camera } from "../canvas/camera.ts";
import { EnvelopeTraffic } from "../canvas/envelopes.ts";
import { GraphPicture } from "../canvas/graph.ts";
import type { Area } from "../canvas/grid.ts";
import { type Handlers, useKeys } from "../keys.ts";
import { Empty, Loaded } from "../parts/load.tsx";
import { notify } from "../parts/notice.tsx";
import { useResource } from "../resource.ts";
import { changeRun, type RunRoute } from "../router.ts";
import { markOf } from "../states.ts";
import type { Connection, GraphLayout, GraphStates } from "../types.ts";
import { useCanvas } from "./canvas.tsx";

/** How many boxes the list for screen readers has at most. */
const MOST_LISTED = 200;
/** How long the camera rests before the list follows it. */
const REST_MS = 250;
/** How far in pixels the pointer may move in a click. */
const CLICK_SLACK = 4;
const ZOOM_STEP = 1.25;
/** The scale from which the text of boxes is easy to read. */
const LEGIBLE = 0.75;

interface ViewProps {
  route: RunRoute;
  /** How the run stands with its agents. */
  connections: Connection[];
}

export function GraphView({ route, connections }: ViewProps): JSX.Element {
  const [opened, setOpened] = useState<string[]>([]);
  const query = opened.length > 0 ? `?open=${opened.map(encodeURIComponent).join(",")}` : "";
  const layout = useResource<GraphLayout>(null, `${runPath(route.run)}/graph${query}`);
  const states = useResource<GraphStates>(route.run, `${runPath(route.run)}/graph/states${query}`);
  const toggleOpen = (step: string): void =>
    setOpened(opened.includes(step) ? opened.filter((name) => name !== step) : [...opened, step]);
  // While another layout of the run is on its way, the last one stays.
  const last = useRef<{ run: string; layout: GraphLayout } | null>(null);
  const current = layout?.value.value;
  if (current) last.current = { run: route.run, layout: current };
  const shown = last.current?.run === route.run ? last.current.layout : null;
  if (!shown) return <Loaded resource={layout}>{() => <></>}</Loaded>;
  if (shown.boxes.id.length === 0) return <Empty>The plan of this run has no steps to draw.</Empty>;
  return (
    <GraphCanvas
      route={route}
      connections={connections}
      layout={shown}
      states={states?.value.value ?? null}
      toggleOpen={toggleOpen}
    />
  );
}

interface Props extends ViewProps {
  layout: GraphLayout;
  states: GraphStates | null;
  /** Makes the items of a for-each boxes of their own, or one box again. */
  toggleOpen(step: string): void;
}

function GraphCanvas({ route, connections, layout, states, toggleOpen }: Props): JSX.Element {
  const picture = useMemo(() => new GraphPicture(layout), [layout]);
  const traffic = useMemo(() => new EnvelopeTraffic(layout), [layout]);
  const camera = useMemo(() => new Camera(), []);
  const placed = useRef<GraphLayout | null>(null);
  const anchor = useRef<{ id: string; area: Area } | null>(null);
  // Until a person moves it, the camera follows the size of the canvas.
  const moved = useRef(false);
  const [selected, setSelected] = useState(-1);
  const [listed, setListed] = useState<number[]>([]);
  const rest = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  if (states) {
    picture.setStates(states.boxes);
    traffic.setSent(states.sent, performance.now(), !matchMedia("(prefers-reduced-motion: reduce)").matches);
  }
  picture.setConnections(connections);

  const { ref, requestDraw } = useCanvas(({ context, width, height, ratio, colors }) => {
    const resized = camera.width !== width || camera.height !== height;
    camera.width = width;
    camera.height = height;
    if (anchor.current && placed.current !== layout) {
      // What was opened, or closed, stays where it was on the screen.
      const area = picture.areaOfId(anchor.current.id);
      if (area) {
        camera.x += area.x - anchor.current.area.x;
        camera.y += area.y - anchor.current.area.y;
      }
      anchor.current = null;
      placed.current = layout;
      listVisible();
    }
    if (width > 0 && (placed.current !== layout || (resized && !moved.current))) {
      placed.current = layout;
      moved.current = false;
      placeCamera(camera, picture);
      listVisible();
    } else if (resized && selected >= 0) camera.reveal(picture.areaOf(selected));
    picture.draw(context, camera, colors, selected, ratio);
    if (traffic.draw(context, performance.now(), colors, camera.scale)) requestDraw();
  });

  const listVisible = (): void => {
    clearTimeout(rest.current);
    rest.current = setTimeout(() => setListed(picture.visibleBoxes(camera.area()).slice(0, MOST_LISTED)), REST_MS);
  };
  useEffect(() => () => clearTimeout(rest.current), []);
  const moveCamera = (change: () => void): void => {
    moved.current = true;
    change();
    requestDraw();
    listVisible();
  };

  const selectBox = (box: number): void => {
    setSelected(box);
    if (box >= 0) moveCamera(() => camera.reveal(picture.areaOf(box)));
  };
  const inspectBox = (box: number): void => {
    const { label } = picture.stateOf(box);
    if (label !== null) changeRun({ step: label, agent: null, turn: null, view: "graph" }, route.step !== null);
    else if (box >= 0) notify(`${layout.boxes.step[box]} has not begun`);
  };
  const toggleBox = (box: number): void => {
    const step = box < 0 ? null : picture.openable(box);
    if (step === null) return notify("The box has no items to show");
    const area = picture.areaOfId(step.id);
    if (!area) return;
    anchor.current = { id: step.id, area };
    moved.current = true;
    setSelected(-1);
    toggleOpen(step.name);
  };
  const moveSelection = (dx: number, dy: number): void => {
    const from = selected >= 0 ? selected : (picture.visibleBoxes(camera.area())[0] ?? 0);
    const to = selected >= 0 ? picture.neighbor(from, dx, dy) : from;
    selectBox(to);
    if (route.step !== null && picture.stateOf(to).label !== null) inspectBox(to);
  };

  // The box of the step in the inspector is selected.
  useEffect(() => {
    if (route.step === null || !states || picture.stateOf(selected).label === route.step) return;
    const id = Object.keys(states.boxes).find((box) => states.boxes[box]?.label === route.step);
    const box = id === undefined ? -1 : layout.boxes.id.indexOf(id);
    if (box >= 0) selectBox(box);
  }, [route.step, states === null, layout]);

  const zoomView = (factor: number, box = selected): void =>
    moveCamera(() => {
      const at = box >= 0 ? camera.placeOf(picture.areaOf(box)) : undefined;
      camera.zoom(factor, at?.x, at?.y);
    });
  const handlers: Handlers = {
    next: () => moveSelection(0, 1),
    previous: () => moveSelection(0, -1),
    left: () => moveSelection(-1, 0),
    right: () => moveSelection(1, 0),
    open: () => inspectBox(selected),
    fold: () => toggleBox(selected),
    zoomIn: () => zoomView(ZOOM_STEP),
    zoomOut: () => zoomView(1 / ZOOM_STEP),
    zoomReset: () => moveCamera(() => camera.fit(layout.size)),
    failed: () => {
      const failed = nextFailed(picture, selected);
      if (failed < 0) notify("No step has failed");
      else {
        selectBox(failed);
        // A box that was found by its state is to be read.
        if (camera.scale < LEGIBLE) zoomView(LEGIBLE / camera.scale, failed);
      }
    },
  };
  useKeys("view", handlers);
  usePointer(ref, camera, picture, moveCamera, (box) => {
    setSelected(box);
    if (box >= 0) inspectBox(box);
  });

  return (
    <section class="graph" aria-label="Graph">
      <canvas ref={ref} aria-hidden="true" />
      <BoxList picture={picture} boxes={listed} selected={selected} />
      <div class="canvas-tools">
        {selected >= 0 && picture.openable(selected) && (
          <button type="button" onClick={handlers.fold}>
            Items <kbd>i</kbd>
          </button>
        )}
        <button type="button" aria-label="Zoom in" onClick={handlers.zoomIn}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={handlers.zoomOut}>
          −
        </button>
        <button type="button" onClick={handlers.zoomReset}>
          All
        </button>
      </div>
    </section>
  );
}

/** Shows the whole graph, or its beginning where the whole would be too small to read. */
function placeCamera(camera: Camera, picture: GraphPicture): void {
  const { size } = picture.layout;
  camera.fit(size);
  if (camera.scale >= 0.5 || size.width * size.height > 4e7) return;
  camera.scale = LEGIBLE;
  camera.x = Math.max(0, (size.width - camera.width / camera.scale) / 2);
  camera.reveal(picture.areaOf(0));
  camera.y = -16;
}

function nextFailed(picture: GraphPicture, selected: number): number {
  for (let offset = 1; offset <= picture.count; offset += 1) {
    const box = (selected + offset + picture.count) % picture.count;
    if (picture.stateOf(box).state === "failed") return box;
  }
  return -1;
}

/** Drags and zooms the camera by the pointer, and tells which box was clicked. */
function usePointer(
  ref: { current: HTMLCanvasElement | null },
  camera: Camera,
  picture: GraphPicture,
  moveCamera: (change: () => void) => void,
  onClick: (box: number) => void,
): void {
  const current = useRef({ picture, moveCamera, onClick });
  current.current = { picture, moveCamera, onClick };
  useEffect(() => {
    const canvas = ref.current;
    if (!canvas) return;
    const pressed = new Map<number, { x: number; y: number }>();
    let moved = 0;
    const placeOf = (event: MouseEvent): { x: number; y: number } => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const startDrag = (event: PointerEvent): void => {
      if (pressed.size === 0) moved = 0;
      canvas.setPointerCapture(event.pointerId);
      pressed.set(event.pointerId, placeOf(event));
    };
    const continueDrag = (event: PointerEvent): void => {
      const from = pressed.get(event.pointerId);
      if (!from) return;
      const to = placeOf(event);
      pressed.set(event.pointerId, to);
      moved += Math.abs(to.x - from.x) + Math.abs(to.y - from.y);
      const other = [...pressed].find(([id]) => id !== event.pointerId)?.[1];
      current.current.moveCamera(() => {
        if (!other) return camera.drag(to.x - from.x, to.y - from.y);
        const [before, after] = [
          Math.hypot(from.x - other.x, from.y - other.y),
          Math.hypot(to.x - other.x, to.y - other.y),
        ];
        camera.zoom(after / Math.max(1, before), other.x, other.y);
      });
    };
    const endDrag = (event: PointerEvent): void => {
      if (pressed.delete(event.pointerId) && pressed.size === 0 && moved <= CLICK_SLACK && event.type === "pointerup") {
        const { x, y } = placeOf(event);
        current.current.onClick(current.current.picture.hit(camera.x + x / camera.scale, camera.y + y / camera.scale));
      }
    };
    const turnWheel = (event: WheelEvent): void => {
      event.preventDefault();
      const { x, y } = placeOf(event);
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * 16 : event.deltaY;
      current.current.moveCamera(() => camera.zoom(Math.exp(-pixels * 0.0015), x, y));
    };
    canvas.addEventListener("pointerdown", startDrag);
    canvas.addEventListener("pointermove", continueDrag);
    canvas.addEventListener("pointerup", endDrag);
    canvas.addEventListener("pointercancel", endDrag);
    canvas.addEventListener("wheel", turnWheel, { passive: false });
    return () => {
      canvas.removeEventListener("pointerdown", startDrag);
      canvas.removeEventListener("pointermove", continueDrag);
      canvas.removeEventListener("pointerup", endDrag);
      canvas.removeEventListener("pointercancel", endDrag);
      canvas.removeEventListener("wheel", turnWheel);
    };
  }, []);
}

/** What the canvas shows, for screen readers; the keys of the page move through it. */
function BoxList({
  picture,
  boxes,
  selected,
}: {
  picture: GraphPicture;
  boxes: number[];
  selected: number;
}): JSX.Element {
  const shown = selected >= 0 && !boxes.includes(selected) ? [selected, ...boxes] : boxes;
  return (
    <ul
      class="hidden-tree"
      role="tree"
      tabIndex={0}
      aria-label="Steps that the graph shows"
      aria-activedescendant={selected >= 0 ? `box-${selected}` : undefined}
    >
      {shown.map((box) => (
        <li key={box} id={`box-${box}`} role="treeitem" aria-selected={box === selected}>
          {describeBox(picture, box)}
        </li>
      ))}
    </ul>
  );
}

function describeBox(picture: GraphPicture, box: number): string {
  const { state, counts, progress } = picture.stateOf(box);
  const parts = [picture.layout.boxes.lines[box]?.join(", "), markOf(state).word];
  if (picture.layout.boxes.many[box]) {
    parts.push(...Object.entries(counts).map(([name, count]) => `${count} ${name}`));
  }
  if (progress) parts.push(progress);
  const connection = picture.connectionOf(box);
  if (connection) parts.push(`agent ${connection.state}${connection.stream ? `, ${connection.stream}` : ""}`);
  return parts.join(": ");
}
