// What stands in the place of a document that is not there. In: a resource. Out: its error, or that it is being loaded.

import type { ComponentChildren, JSX } from "preact";
import type { Resource } from "../resource.ts";

interface Props<T> {
  resource: Resource<T> | null;
  children(value: T): ComponentChildren;
}

export function Loaded<T>({ resource, children }: Props<T>): JSX.Element {
  const value = resource?.value.value ?? null;
  if (value !== null) return <>{children(value)}</>;
  const error = resource?.error.value;
  if (!error) return <p class="empty loading">Loading…</p>;
  return (
    <div class="empty" role="alert">
      <p>{error.message}</p>
      <button type="button" onClick={() => resource?.refresh()}>
        Try again
      </button>
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}
