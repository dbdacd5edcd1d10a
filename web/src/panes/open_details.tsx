// A card that folds. In: a summary and a body. Out: a `details` element whose body exists only while it is open.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

interface Props {
  summary: ComponentChildren;
  open: boolean;
  children: ComponentChildren;
}

export function OpenDetails({ summary, open, children }: Props): JSX.Element {
  const [shown, setShown] = useState(open);
  return (
    <details class="card" open={shown} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {shown && children}
    </details>
  );
}
