// The list of all keys. In: the table of keys. Out: a dialog.

import type { JSX } from "preact";
import { BINDINGS, useKeys } from "../keys.ts";
import { Dialog } from "../parts/dialog.tsx";
import { switchTheme, theme } from "../theme.ts";

export function Help({ onClose }: { onClose(): void }): JSX.Element {
  useKeys("dialog", { theme: switchTheme });
  const groups = [...new Set(BINDINGS.map((binding) => binding.group))];
  return (
    <Dialog title="Keys" class="help" onClose={onClose}>
      <div class="key-groups" tabIndex={0} role="group" aria-label="All keys">
        {groups.map((group) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {BINDINGS.filter((binding) => binding.group === group).map((binding) => (
                <div key={binding.action}>
                  <dt>
                    {binding.caps.map((cap) => (
                      <kbd key={cap}>{cap}</kbd>
                    ))}
                  </dt>
                  <dd>{binding.help}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <footer class="page-foot">
        <button type="button" onClick={switchTheme}>
          Theme: {theme.value} <kbd>y</kbd>
        </button>
      </footer>
    </Dialog>
  );
}
