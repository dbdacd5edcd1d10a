// The time axis of the timeline. In: bars and a range of time. Out: places on the axis for times, and times for places;
// where it folds, time in which nothing works takes a fixed small width.

import type { Bar } from "../types.ts";

/** The states of bars in which nothing works. */
const IDLE = new Set(["waiting", "idle", "pending", "queued"]);
/** An idle time is folded where it is longer than this part of the busy time. */
const FOLD_FROM = 0.04;
/** The width of a folded time, as a part of the busy time. */
const FOLD_WIDTH = 0.03;

export interface Segment {
  from: number;
  to: number;
  /** The place of `from` on the axis, which is 1 long. */
  at: number;
  width: number;
  folded: boolean;
}

export interface TimeScale {
  segments: Segment[];
  place(time: number): number;
}

export function isIdle(state: string): boolean {
  return IDLE.has(state);
}

export function buildScale(bars: readonly Bar[], from: number, to: number, fold: boolean): TimeScale {
  const end = Math.max(to, from + 1);
  const busy = mergeBusy(bars, from, end);
  const total = busy.reduce((sum, [start, stop]) => sum + stop - start, 0);
  const gaps =
    fold && total > 0 ? findGaps(busy, from, end).filter(([start, stop]) => stop - start > total * FOLD_FROM) : [];
  const segments = placeSegments(cutRange(from, end, gaps), total * FOLD_WIDTH);
  return { segments, place: (time) => placeTime(segments, time) };
}

/** The times in which something works, merged and in order. */
function mergeBusy(bars: readonly Bar[], from: number, to: number): [number, number][] {
  const spans = bars
    .filter((bar) => !isIdle(bar[3]))
    .map(([, start, end]): [number, number] => [Math.max(start, from), Math.min(end ?? to, to)])
    .sort((a, b) => a[0] - b[0]);
  const merged: [number, number][] = [];
  for (const [start, end] of spans) {
    const last = merged.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else if (end >= start) merged.push([start, end]);
  }
  return merged;
}

function findGaps(busy: [number, number][], from: number, to: number): [number, number][] {
  const gaps: [number, number][] = [];
  let at = from;
  for (const [start, end] of busy) {
    if (start > at) gaps.push([at, start]);
    at = Math.max(at, end);
  }
  if (to > at) gaps.push([at, to]);
  return gaps;
}

function cutRange(from: number, to: number, gaps: [number, number][]): { from: number; to: number; folded: boolean }[] {
  const parts: { from: number; to: number; folded: boolean }[] = [];
  let at = from;
  for (const [start, end] of gaps) {
    if (start > at) parts.push({ from: at, to: start, folded: false });
    parts.push({ from: start, to: end, folded: true });
    at = end;
  }
  if (to > at) parts.push({ from: at, to, folded: false });
  return parts;
}

function placeSegments(parts: { from: number; to: number; folded: boolean }[], foldWidth: number): Segment[] {
  const widths = parts.map(({ from, to, folded }) => (folded ? foldWidth : to - from));
  const total = widths.reduce((sum, width) => sum + width, 0) || 1;
  let at = 0;
  return parts.map((part, index) => {
    const width = (widths[index] ?? 0) / total;
    const segment = { ...part, at, width };
    at += width;
    return segment;
  });
}

function placeTime(segments: Segment[], time: number): number {
  let [low, high] = [0, segments.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time < (segments[middle]?.to ?? 0)) high = middle;
    else low = middle + 1;
  }
  const segment = segments[low];
  if (!segment) return 0;
  const part = (time - segment.from) / (segment.to - segment.from);
  return segment.at + Math.min(1, Math.max(0, part)) * segment.width;
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5,
  432e5, 864e5,
];

/** The times of the ticks of a segment: its begin, and round times so that there are about `most` of them. */
export function tickTimes(segment: Segment, origin: number, most: number): number[] {
  const span = segment.to - segment.from;
  if (segment.folded) return [];
  if (most < 1) return [segment.from];
  const step = STEPS.find((size) => span / size <= most) ?? span;
  const times = [segment.from];
  for (let time = origin + (Math.floor((segment.from - origin) / step) + 1) * step; time < segment.to; time += step)
    times.push(time);
  return times;
}
