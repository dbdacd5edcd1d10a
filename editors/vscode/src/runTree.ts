// What the view of runs shows, without VS Code: runs, what waits for a person, steps and their files.

import type { Approval, Run, RunDetails, RunState, StepDetails, StepFiles, StepStatus } from "./documents";

/** Something in the tree. */
export interface Entry {
    label: string;
    /** What stands behind the label, in gray. */
    description: string;
    tooltip: string;
    /** An icon of VS Code, and the color that it has. */
    icon: string;
    color?: string;
    /** What the menus go by. */
    context: string;
    /** The same in each refresh, so that what is open stays open. */
    id: string;
    /** The run that it belongs to. */
    run: string;
    /** The step, as the command line takes it. */
    step?: string;
    /** What waits for an answer: the name of a gate, or the number of a request. */
    asks?: string;
    /** The file that it opens. */
    file?: string;
    children: boolean;
}

type Icon = readonly [icon: string, color?: string];

const GREEN = "testing.iconPassed";
const RED = "testing.iconFailed";
const YELLOW = "list.warningForeground";
const BLUE = "charts.blue";

const RUN_ICONS: Record<RunState, Icon> = {
    running: ["sync~spin", BLUE],
    resumable: ["debug-pause", YELLOW],
    succeeded: ["pass", GREEN],
    failed: ["error", RED],
    damaged: ["warning", YELLOW],
};

const STEP_ICONS: Record<StepStatus, Icon> = {
    succeeded: ["pass", GREEN],
    failed: ["error", RED],
    skipped: ["debug-step-over"],
    running: ["sync~spin", BLUE],
    retrying: ["refresh", BLUE],
    idle: ["watch", BLUE],
    stalled: ["question", YELLOW],
    waiting: ["question", YELLOW],
    cancelled: ["circle-slash"],
};

/** What waits for a person has this. */
const QUESTION: Icon = ["bell-dot", YELLOW];

function makeIcon([icon, color]: Icon): { icon: string; color?: string } {
    return color === undefined ? { icon } : { icon, color };
}

/** Whether something waits for a person. */
function isAsking(run: Run): boolean {
    return run.gates.length + run.approvals.length > 0;
}

/** Whether the tree can change by itself. */
export function isAlive(runs: Run[]): boolean {
    return runs.some((run) => run.state === "running");
}

/** How many questions wait for a person: the number on the view's icon. */
export function countQuestions(runs: Run[]): number {
    const open = runs.filter((run) => run.state === "running");
    return open.reduce((sum, run) => sum + run.gates.length + run.approvals.length, 0);
}

export function makeRun(run: Run, now: number): Entry {
    const name = run.pipeline === "" || run.pipeline === run.workflow ? run.workflow : `${run.workflow} (${run.pipeline})`;
    const asking = run.state === "running" && isAsking(run);
    const steps = `${run.done}/${run.total}`;
    const state = asking ? "waits for you" : run.state;
    return {
        ...makeIcon(asking ? QUESTION : RUN_ICONS[run.state]),
        label: name || run.run,
        description: `${state} · ${steps} · ${formatAge(now - run.started_ms)}`,
        tooltip: [run.run, `${run.state}, ${steps} steps`, run.problem ?? ""].filter((line) => line !== "").join("\n"),
        context: `run.${run.state}${asking ? ".asks" : ""}`,
        id: run.run,
        run: run.run,
        children: run.state !== "damaged",
    };
}

/** What waits for a person, the steps that began, and those that have not. */
export function listChildren(run: RunDetails): Entry[] {
    const open = run.state === "running";
    const gates = open ? run.gates.map((gate) => makeQuestion(run.run, gate, `gate ${gate}`, gate)) : [];
    const requests = open
        ? run.approvals.map((asked) => makeQuestion(run.run, String(asked.id), describeRequest(asked), asked.step))
        : [];
    const waiting = open ? run.waiting.steps.map((step) => makeWaiting(run.run, step.step, step.waits)) : [];
    return [...gates, ...requests, ...run.steps.map((step) => makeStep(run.run, step)), ...waiting];
}

function makeQuestion(run: string, asks: string, label: string, step: string): Entry {
    return {
        ...makeIcon(QUESTION),
        label,
        description: "waits for your answer",
        tooltip: `swarmc approve ${run} ${asks}`,
        context: "question",
        id: `${run} asks ${asks}`,
        run,
        step,
        asks,
        children: false,
    };
}

/** What an agent asks for. */
export function describeRequest(asked: Approval): string {
    switch (asked.wants) {
        case "tool":
            return `${asked.agent} wants tool ${asked.tool}`;
        case "spawn":
            return `${asked.agent} wants a helper, ${asked.plays}`;
        case "node":
            return `${asked.agent} wants task ${asked.task}`;
        case "help":
            return `${asked.agent} wants help`;
        case "plan":
            return `${asked.agent} wants a change of the plan`;
        case "merge":
            return `${asked.agent} wants to move a branch on to a merge`;
        case "go_on":
            return `${asked.agent} wants to go on after ${asked.times} turns with the same result`;
    }
}

function makeStep(run: string, step: StepFiles): Entry {
    const label = labelStep(step);
    const round = step.iteration > 1 ? `round ${step.iteration}` : "";
    const time = step.started_ms !== null && step.ended_ms !== null ? formatTime(step.ended_ms - step.started_ms) : "";
    const status = step.status === "succeeded" ? "" : step.status;
    const tries = step.attempts > 1 ? `attempt ${step.attempts}` : "";
    return {
        ...makeIcon(STEP_ICONS[step.status]),
        label,
        description: [status, round, tries, time].filter((part) => part !== "").join(" · "),
        tooltip: [step.reason ?? step.status, step.stderr].filter((line) => line !== "").join("\n"),
        context: "step",
        id: `${run} step ${step.within ?? ""} ${step.step} ${step.iteration} ${step.instance}`,
        run,
        step: label,
        children: listPaths(step).length > 0,
    };
}

/** The name that the command line takes: an item of a for-each is named as its frame. */
function labelStep({ step, within }: StepFiles): string {
    if (within === null) {
        return step;
    }
    const frame = within.slice(within.lastIndexOf("/") + 1);
    const each = /^(.*)\[[^[]*\]$/.exec(frame)?.[1]?.split(/[.~]/)[0];
    return each === step ? within : `${within}/${step}`;
}

function makeWaiting(run: string, step: string, waits: string): Entry {
    return {
        icon: "circle-outline",
        label: step,
        description: `waits for ${waits}`,
        tooltip: `waits for ${waits}`,
        context: "waiting",
        id: `${run} waits ${step}`,
        run,
        step,
        children: false,
    };
}

function listPaths(step: StepFiles): [name: string, path: string][] {
    const { output, prompt, system, stdout, stderr } = step.paths;
    const paths = { output, prompt, system, stdout, stderr };
    return Object.entries(paths).filter((pair): pair is [string, string] => typeof pair[1] === "string");
}

/** The files of a step, which open when they are chosen. */
export function listFiles(run: RunDetails, parent: string): Entry[] {
    const step = run.steps.find((step) => makeStep(run.run, step).id === parent);
    return (step === undefined ? [] : listPaths(step)).map(([name, file]) => ({
        icon: "file",
        label: name,
        description: "",
        tooltip: file,
        context: "file",
        id: `${parent} ${name}`,
        run: run.run,
        file,
        children: false,
    }));
}

/** A question with the answers that it takes. */
export interface Question {
    message: string;
    choices: string[];
    /** The fields that a person fills in. */
    fields: { name: string; optional: boolean; description: string | null }[];
    /** Whether a reason can be given with a choice. */
    because: boolean;
}

/** The question that a step waits with; none once it has been answered. */
export function readQuestion(step: StepDetails, asks: string): Question | undefined {
    const asked = step.approvals.find((approval) => String(approval.id) === asks && approval.answer === null);
    if (asked !== undefined) {
        const { arguments: given, task, payload, message, evidence } = asked;
        const about = [given, task, payload, message, evidence].filter((part) => part !== undefined && part !== null);
        const text = about.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join("\n");
        const line = `${describeRequest(asked)}\n${text}`.trim();
        return { message: line, choices: asked.choices, fields: [], because: true };
    }
    if (step.gate === null) {
        return undefined;
    }
    return { message: step.gate.message, choices: step.gate.options, fields: step.gate.asks, because: false };
}

/** The command that gives an answer. */
export function answerWords(
    run: string,
    asks: string,
    choice: string,
    fields: [name: string, value: string][],
    because: string,
): string[] {
    const asked = fields.filter(([, value]) => value !== "").flatMap(([name, value]) => ["--ask", `${name}=${value}`]);
    return ["approve", run, asks, choice, ...asked, ...(because === "" ? [] : ["--because", because])];
}

/** The arguments of `resume` for a run: what failed is tried again. */
export function resumeArguments(entry: Entry): string[] {
    return [entry.run, ...(entry.context === "run.failed" ? ["--retry-failed"] : [])];
}

function formatAge(ms: number): string {
    const minutes = Math.floor(ms / 60_000);
    if (minutes < 1) {
        return "just now";
    }
    if (minutes < 60) {
        return `${minutes} min ago`;
    }
    const hours = Math.floor(minutes / 60);
    return hours < 48 ? `${hours} h ago` : `${Math.floor(hours / 24)} days ago`;
}

function formatTime(ms: number): string {
    const seconds = ms / 1000;
    if (seconds < 60) {
        return `${seconds.toFixed(1)} s`;
    }
    return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}
