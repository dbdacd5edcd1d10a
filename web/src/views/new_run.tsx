// Starts a run. In: the specs of the server and the plan of the chosen one. Out: a form made from the plan's params;
// the run, or the problems of the spec.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, postJson } from "../api.ts";
import { canAct } from "../live.ts";
import { Empty, Loaded } from "../parts/load.tsx";
import { notify } from "../parts/notice.tsx";
import { RUNS, useResource } from "../resource.ts";
import { navigate, runRoute } from "../router.ts";
import type { Diagnostic, Param, Plan } from "../types.ts";

export function NewRun(): JSX.Element {
  const specs = useResource<{ specs: string[] }>(RUNS, "/specs");
  return (
    <div class="page">
      <header class="page-head">
        <h1>New run</h1>
      </header>
      {!canAct.value && <Empty>The server takes no orders now.</Empty>}
      <Loaded resource={specs}>{({ specs: paths }) => <SpecForm paths={paths} />}</Loaded>
    </div>
  );
}

function SpecForm({ paths }: { paths: string[] }): JSX.Element {
  const [only] = paths.length === 1 ? paths : [];
  const [chosen, setChosen] = useState("");
  const spec = chosen || (only ?? "");
  const first = useRef<HTMLSelectElement>(null);
  useEffect(() => first.current?.focus(), []);
  return (
    <div class="form">
      <label>
        <span>Spec</span>
        <select ref={first} value={spec} onChange={(event) => setChosen(event.currentTarget.value)}>
          {only === undefined && <option value="">choose one</option>}
          {paths.map((path) => (
            <option key={path}>{path}</option>
          ))}
        </select>
      </label>
      {paths.length === 0 && <Empty>The server knows no spec: start it with `--specs DIR`.</Empty>}
      {spec && <PlanForm key={spec} spec={spec} />}
    </div>
  );
}

function PlanForm({ spec }: { spec: string }): JSX.Element {
  const plan = useResource<Plan>(RUNS, `/specs/plan?spec=${encodeURIComponent(spec)}`);
  const problems = plan?.error.value?.problem.diagnostics;
  if (problems) return <Diagnostics found={problems} />;
  return <Loaded resource={plan}>{(value) => <ParamForm spec={spec} plan={value} />}</Loaded>;
}

function ParamForm({ spec, plan }: { spec: string; plan: Plan }): JSX.Element {
  const [pipeline, setPipeline] = useState(plan.default);
  const [problems, setProblems] = useState<Diagnostics | null>(null);
  const [sending, setSending] = useState(false);
  // The same request twice, after a lost answer for example, starts one run.
  const [key] = useState(() => crypto.randomUUID());
  const own = plan.pipelines.find(({ name }) => name === pipeline)?.params ?? [];
  const params = [...(plan.params ?? []), ...own];

  const startRun = async (form: HTMLFormElement): Promise<void> => {
    setSending(true);
    setProblems(null);
    try {
      const body = readForm(form, spec, pipeline, params);
      const answer = await postJson<{ run: string | null }>("/runs", body, { "Idempotency-Key": key });
      if (answer.run) navigate(runRoute(answer.run));
      else {
        notify("The run is queued");
        navigate({ page: "runs", search: "" });
      }
    } catch (error) {
      setSending(false);
      if (error instanceof ApiError && error.problem.diagnostics) setProblems(error.problem.diagnostics);
      else notify(error instanceof Error ? error.message : String(error), true);
    }
  };

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void startRun(event.currentTarget);
      }}
    >
      {plan.description && <p class="muted">{plan.description}</p>}
      <label>
        <span>Pipeline</span>
        <select value={pipeline} onChange={(event) => setPipeline(event.currentTarget.value)}>
          {[...plan.pipelines, ...(plan.swarms ?? [])].map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {params.map((param) => (
        <ParamField key={param.name} param={param} />
      ))}
      {(plan.providers ?? []).length > 0 && (
        <details>
          <summary>Other providers</summary>
          {plan.providers?.map(({ name }) => (
            <label key={name}>
              <span>in place of {name}</span>
              <input name={`provider:${name}`} autocomplete="off" spellcheck={false} />
            </label>
          ))}
        </details>
      )}
      <label class="check">
        <input type="checkbox" name="headless" />
        <span>Headless: gates take their default answer</span>
      </label>
      {problems && <Diagnostics found={problems} />}
      <div class="choices">
        <button type="submit" class="primary" disabled={sending || !canAct.value}>
          Start <kbd>Enter</kbd>
        </button>
      </div>
    </form>
  );
}

function ParamField({ param }: { param: Param }): JSX.Element {
  const { name, type, optional, description } = param;
  const kind = typeof type === "string" ? type : "json";
  const given = param.default ?? undefined;
  const required = !optional && given === undefined;
  const field = `param:${name}`;
  return (
    <label>
      <span>
        {name} <span class="muted">{optional ? `${kind}, optional` : kind}</span>
        {description && <small>{description}</small>}
      </span>
      {kind === "bool" ? (
        <select name={field} defaultValue={given ?? ""} required={required}>
          {given === undefined && <option value="" />}
          <option>true</option>
          <option>false</option>
        </select>
      ) : kind === "json" ? (
        <textarea name={field} rows={4} required={required} placeholder={given} spellcheck={false} />
      ) : (
        <ValueInput name={field} kind={kind} required={required} placeholder={given} />
      )}
    </label>
  );
}

interface InputProps {
  name: string;
  kind: string;
  required: boolean;
  placeholder: string | undefined;
}

function ValueInput({ kind, ...rest }: InputProps): JSX.Element {
  if (kind === "int") return <input type="number" {...rest} />;
  if (kind === "float") return <input type="number" step="any" {...rest} />;
  return <input type="text" autocomplete="off" {...rest} />;
}

/** The request: an empty field leaves the plan's own value. */
function readForm(form: HTMLFormElement, spec: string, pipeline: string, params: Param[]): Record<string, unknown> {
  const data = new FormData(form);
  const values: Record<string, string> = {};
  for (const { name } of params) {
    const value = String(data.get(`param:${name}`) ?? "");
    if (value !== "") values[name] = value;
  }
  const providers: Record<string, string> = {};
  for (const [field, value] of data) {
    if (field.startsWith("provider:") && value !== "") providers[field.slice("provider:".length)] = String(value);
  }
  return { spec, pipeline, params: values, providers, headless: data.has("headless") };
}

type Diagnostics = NonNullable<ApiError["problem"]["diagnostics"]>;

function Diagnostics({ found }: { found: Diagnostics }): JSX.Element {
  const list: Diagnostic[] = Array.isArray(found) ? found : (found.diagnostics ?? []);
  return (
    <ul class="diagnostics" role="alert">
      {list.map(({ code, severity, message, labels }, at) => {
        const place = labels?.[0]?.at;
        return (
          <li key={at}>
            <span class={severity === "error" ? "color-bad strong" : "color-wait strong"}>
              {severity ?? "problem"} {code}
            </span>{" "}
            {message}
            {place && (
              <span class="mono muted">
                {" "}
                {place.file}:{place.start.line}:{place.start.column}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
