// Compiles only where the types that `openapi-typescript` makes are those of the API.

import type { components, paths } from "./schema.js";

type Run = components["schemas"]["RunSnapshot"];
type Steps = paths["/api/v1/runs/{run}/steps"]["get"]["responses"]["200"]["content"]["application/json"];
type Answer = NonNullable<paths["/api/v1/runs/{run}/gates/{gate}"]["post"]["requestBody"]>["content"]["application/json"];

export function summarizeRun(run: Run): string {
  return `${run.run} ${run.state} ${run.counts["failed"] ?? 0}`;
}

export function listLabels(page: Steps): string[] {
  return page.steps.map((step) => step.label);
}

export const answer: Answer = { choice: "approve", fields: { note: "seen" } };

// @ts-expect-error a choice is needed
export const wrong: Answer = { because: "no" };
