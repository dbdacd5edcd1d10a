// A gate or a request of an agent. In: a wait. Out: the question with its choices; a choice is sent after a line has
// repeated what is agreed to and the person has confirmed it.

import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { postJson, runPath } from "../api.ts";
import { formatAge } from "../format.ts";
import { useKeys } from "../keys.ts";
import { canAct, health, now, waits } from "../live.ts";
import { formatRoute, runRoute } from "../router.ts";
import type { Wait } from "../types.ts";
import { StateMark } from "./mark.tsx";
import { giveOrder, notify } from "./notice.tsx";

interface Props {
  wait: Wait;
  /** Whether the keys for approve and deny are for this question. */
  active: boolean;
  /** Whether it names its run, and is a part of the page by itself: where the questions of several runs are listed. */
  namesRun?: boolean;
}

/** The key of a wait, unique among those of all runs. */
export function waitId(wait: Wait): string {
  return `${wait.run}/${wait.kind}/${wait.key}`;
}

export function Question({ wait, active, namesRun = false }: Props): JSX.Element {
  const [choice, setChoice] = useState<string | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const enabled = canAct.value;
  const readOnly = health.value?.read_only === true;
  const pickChoice = (picked: string | undefined): void | false => {
    if (!active || !enabled || picked === undefined) return false;
    if (form.current?.reportValidity()) setChoice(picked);
  };
  useKeys("panel", {
    approve: () => pickChoice(wait.choices[0]),
    deny: () => pickChoice(wait.choices.at(-1)),
    back: () => (choice === null ? false : setChoice(null)),
  });

  const sendAnswer = async (): Promise<void> => {
    if (!form.current || choice === null) return;
    const body = readAnswer(form.current, choice, wait);
    setChoice(null);
    if (!body) return;
    const kind = wait.kind === "gate" ? "gates" : "approvals";
    await giveOrder(postJson(`${runPath(wait.run)}/${kind}/${encodeURIComponent(wait.key)}`, body));
    waits.refresh();
  };

  const Heading = namesRun ? "h2" : "h3";
  const heading = `question-${waitId(wait)}`;
  return (
    <section class={active ? "question active" : "question"} aria-labelledby={heading}>
      <header>
        <StateMark state="waiting" />
        <Heading id={heading}>{wait.title}</Heading>
      </header>
      <p class="facts">
        <a href={formatRoute(runRoute(wait.run, { step: wait.step }))}>
          {namesRun ? `${wait.run} / ${wait.step}` : wait.step}
        </a>
        <span>asked {formatAge(wait.since_ms, now.value)}</span>
        {wait.expiry && <span>{wait.expiry}</span>}
      </p>
      {wait.lines.length > 0 && (
        <pre class="asked" tabIndex={0} role="region" aria-label={`What is asked: ${wait.title}`}>
          {wait.lines.join("\n")}
        </pre>
      )}
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          void sendAnswer();
        }}
      >
        {enabled && <AnswerFields wait={wait} />}
        {readOnly ? (
          <p class="muted">It can be answered with: {wait.choices.join(", ")}</p>
        ) : choice === null ? (
          <div class="choices">
            {wait.choices.map((word, at) => (
              <button
                key={word}
                type="button"
                class={at === 0 ? "primary" : ""}
                disabled={!enabled}
                onClick={() => {
                  if (form.current?.reportValidity()) setChoice(word);
                }}
              >
                {word}
                {active && at === 0 && <kbd>a</kbd>}
                {active && at > 0 && at === wait.choices.length - 1 && <kbd>d</kbd>}
              </button>
            ))}
            {wait.choices.length === 0 && (
              <span class="muted">Answer with `swarmc approve`: several steps have its name.</span>
            )}
          </div>
        ) : (
          <ConfirmLine text={repeatAnswer(wait, choice, form.current)} onCancel={() => setChoice(null)} />
        )}
      </form>
    </section>
  );
}

/** What is agreed to, with all that was typed. */
function repeatAnswer(wait: Wait, choice: string, form: HTMLFormElement | null): string {
  const typed = [...(form ? new FormData(form) : [])].map(([name, value]) => [
    name.replace(/^field:/, ""),
    String(value).trim(),
  ]);
  const more = typed.filter(([, value]) => value).map(([name, value]) => `, ${name} “${value}”`);
  const place = `step ${wait.step} of run ${wait.run}`;
  return `Answer “${choice}”${more.join("")} to “${wait.title}” (${place})?`;
}

function AnswerFields({ wait }: { wait: Wait }): JSX.Element {
  return (
    <div class="fields">
      {wait.fields.map((field) => (
        <label key={field.name}>
          <span>
            {field.name}
            {field.optional ? " (optional)" : ""}
            {field.description ? `: ${field.description}` : ""}
          </span>
          <input name={`field:${field.name}`} required={!field.optional} autocomplete="off" />
        </label>
      ))}
      {wait.kind !== "gate" && (
        <label>
          <span>why, for the agent (optional)</span>
          <input name="because" autocomplete="off" />
        </label>
      )}
      {wait.arguments && (
        <label>
          <span>other arguments, as JSON (optional)</span>
          <textarea name="arguments" rows={2} spellcheck={false} />
        </label>
      )}
    </div>
  );
}

/** The body of the answer; null, with a notice, where the arguments are no JSON. */
function readAnswer(form: HTMLFormElement, choice: string, wait: Wait): Record<string, unknown> | null {
  const data = new FormData(form);
  const readField = (name: string): string => String(data.get(name) ?? "").trim();
  const body: Record<string, unknown> = { choice };
  if (readField("because")) body["because"] = readField("because");
  const fields = wait.fields
    .map((field) => [field.name, readField(`field:${field.name}`)])
    .filter(([, value]) => value);
  if (fields.length > 0) body["fields"] = Object.fromEntries(fields);
  if (readField("arguments")) {
    try {
      body["arguments"] = JSON.parse(readField("arguments"));
    } catch {
      notify("The arguments are no JSON", true);
      return null;
    }
  }
  return body;
}

/** The line that repeats an order; its button takes the focus, so that Enter confirms. */
export function ConfirmLine({ text, onCancel }: { text: string; onCancel(): void }): JSX.Element {
  const confirm = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => confirm.current?.focus(), []);
  return (
    <div class="confirm" role="group" aria-label="Confirm">
      <p>{text}</p>
      <button ref={confirm} type="submit" class="primary" disabled={!canAct.value}>
        Confirm <kbd>Enter</kbd>
      </button>
      <button type="button" onClick={onCancel}>
        Cancel <kbd>Esc</kbd>
      </button>
    </div>
  );
}
