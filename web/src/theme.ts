// Light and dark. In: the switch of the page. Out: `data-theme` of the document, and the colours that the canvas draws
// with.

import { computed, effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const THEMES: readonly Theme[] = ["system", "light", "dark"];
const KEY = "swarmc.theme";

const dark = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(dark.matches);

export const theme = signal<Theme>(THEMES.find((name) => name === localStorage.getItem(KEY)) ?? "system");

/** What is shown: `light` or `dark`. */
const shownTheme = computed(() => (theme.value === "system" ? (systemDark.value ? "dark" : "light") : theme.value));

export function switchTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system";
}

/** Follows the switch and the system from now on. */
export function followTheme(): void {
  dark.addEventListener("change", () => {
    systemDark.value = dark.matches;
  });
  effect(() => {
    document.documentElement.dataset["theme"] = shownTheme.value;
    localStorage.setItem(KEY, theme.value);
  });
}

const COLORS = {
  page: "--page",
  surface: "--surface",
  raised: "--raised",
  line: "--line",
  text: "--text",
  muted: "--muted",
  accent: "--accent",
  message: "--message",
  good: "--state-good",
  bad: "--state-bad",
  busy: "--state-busy",
  wait: "--state-wait",
  warn: "--state-warn",
  quiet: "--state-quiet",
} as const;

export type Colors = Record<keyof typeof COLORS, string>;

/** The colours of the shown theme, for a canvas. */
export const colors = computed<Colors>(() => {
  const attribute = shownTheme.value;
  document.documentElement.dataset["theme"] = attribute;
  const style = getComputedStyle(document.documentElement);
  const readColor = (name: string): string => style.getPropertyValue(name).trim();
  return Object.fromEntries(Object.entries(COLORS).map(([name, variable]) => [name, readColor(variable)])) as Colors;
});

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
export const MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace";
