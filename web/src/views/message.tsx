// Writes to an agent of a run. In: the run and a receiver. Out: a dialog that sends the message.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { postJson, runPath } from "../api.ts";
import { Dialog } from "../parts/dialog.tsx";
import { giveOrder } from "../parts/notice.tsx";

export function MessageForm({ run, to, onClose }: { run: string; to: string; onClose(): void }): JSX.Element {
  const form = useRef<HTMLFormElement>(null);
  const sendMessage = async (): Promise<void> => {
    if (!form.current) return;
    const data = new FormData(form.current);
    const body = {
      to: String(data.get("to") ?? "").trim(),
      text: String(data.get("text") ?? ""),
      interrupt: data.has("interrupt"),
    };
    if (await giveOrder(postJson(`${runPath(run)}/messages`, body))) onClose();
  };
  return (
    <Dialog title="Message" class="message" onClose={onClose}>
      <form
        ref={form}
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage();
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.current?.requestSubmit();
        }}
      >
        <label>
          <span>
            To <small>STEP, STEP/AGENT or context:PACK</small>
          </span>
          <input
            name="to"
            required
            autofocus={to === ""}
            defaultValue={to}
            autocomplete="off"
            spellcheck={false}
            class="mono"
          />
        </label>
        <label>
          <span>Text</span>
          <textarea name="text" rows={5} required autofocus={to !== ""} />
        </label>
        <label class="check">
          <input type="checkbox" name="interrupt" />
          <span>Interrupt the turn that goes on</span>
        </label>
        <div class="choices">
          <button type="submit" class="primary">
            Send <kbd>Ctrl Enter</kbd>
          </button>
        </div>
      </form>
    </Dialog>
  );
}
