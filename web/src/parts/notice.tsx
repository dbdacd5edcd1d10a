// What the page says after an order. In: calls of `notify`. Out: a line that screen readers read out, for some seconds.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { ApiError } from "../api.ts";

const SHOWN_MS = 6000;

const notice = signal<{ text: string; bad: boolean } | null>(null);

export function notify(text: string, bad = false): void {
  const shown = { text, bad };
  notice.value = shown;
  setTimeout(() => {
    if (notice.peek() === shown) notice.value = null;
  }, SHOWN_MS);
}

/** Gives an order and says what came of it. Says whether it was taken. */
export async function giveOrder(order: Promise<{ said?: string }>): Promise<boolean> {
  try {
    const { said } = await order;
    notify(said || "Done");
    return true;
  } catch (error) {
    notify(error instanceof ApiError ? error.message : String(error), true);
    return false;
  }
}

export function Notice(): JSX.Element {
  return (
    <div class="notice-area" role="status" aria-live="polite">
      {notice.value && <div class={notice.value.bad ? "notice bad" : "notice"}>{notice.value.text}</div>}
    </div>
  );
}
