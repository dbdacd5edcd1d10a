// A canvas that fills its place. In: a function that draws. Out: a canvas element; it draws again, once a frame at
// most, when it is asked to and when its size or the theme changes.

import { type RefObject } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type Colors, colors } from "../theme.ts";

export interface Frame {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  /** The pixels of the screen in a CSS pixel. */
  ratio: number;
  colors: Colors;
}

export interface CanvasHandle {
  ref: RefObject<HTMLCanvasElement | null>;
  requestDraw(): void;
}

export function useCanvas(draw: (frame: Frame) => void): CanvasHandle {
  const ref = useRef<HTMLCanvasElement>(null);
  const current = useRef(draw);
  current.current = draw;
  const shown = colors.value;

  const requestDraw = useMemo(() => {
    let asked = false;
    return (): void => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        const canvas = ref.current;
        const context = canvas?.getContext("2d", { alpha: false });
        if (!canvas || !context) return;
        const ratio = devicePixelRatio;
        current.current({
          context,
          width: canvas.clientWidth,
          height: canvas.clientHeight,
          ratio,
          colors: colors.peek(),
        });
      });
    };
  }, []);

  useEffect(() => {
    const canvas = ref.current;
    if (!canvas) return;
    const resize = new ResizeObserver(() => {
      canvas.width = Math.round(canvas.clientWidth * devicePixelRatio);
      canvas.height = Math.round(canvas.clientHeight * devicePixelRatio);
      requestDraw();
    });
    resize.observe(canvas);
    return () => resize.disconnect();
  }, []);
  // What is drawn depends on everything that the component was rendered from.
  useEffect(requestDraw);
  useEffect(requestDraw, [shown]);
  return { ref, requestDraw };
}
