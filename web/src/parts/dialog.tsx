// A dialog over the page. In: a title and contents. Out: a modal `dialog` that Escape closes and that keeps all keys.

import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useKeys } from "../keys.ts";
import { Notice } from "./notice.tsx";

interface Props {
  title: string;
  class?: string;
  onClose(): void;
  children: ComponentChildren;
}

export function Dialog({ title, class: name = "", onClose, children }: Props): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useKeys("dialog", { back: onClose });
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={`dialog ${name}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2>{title}</h2>
          <button type="button" class="quiet" onClick={onClose}>
            Close
          </button>
        </header>
        {children}
      </div>
      {/* What lies below a modal dialog is not read out. */}
      <Notice />
    </dialog>
  );
}
