// The frame of the page: the bar at the top, the banner of a lost connection, and the view that the address names. In:
// the route. Out: the page.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { unauthorized } from "../api.ts";
import { formatClock, formatPlural } from "../format.ts";
import { runAction, useKeys } from "../keys.ts";
import { canAct, health, lostAt, waitList } from "../live.ts";
import { Notice } from "../parts/notice.tsx";
import { formatRoute, navigate, type Route, route } from "../router.ts";
import { switchTheme, theme } from "../theme.ts";
import { Help } from "./help.tsx";
import { NewRun } from "./new_run.tsx";
import { Palette } from "./palette.tsx";
import { RunPage } from "./run.tsx";
import { Runs } from "./runs.tsx";
import { Waits } from "./waits.tsx";

const overlay = signal<"palette" | "help" | null>(null);

const RUNS_ROUTE: Route = { page: "runs", search: "" };

function closeOverlay(): void {
  overlay.value = null;
}

export function App(): JSX.Element {
  useKeys("page", {
    runs: () => navigate(RUNS_ROUTE),
    waits: () => navigate({ page: "waits" }),
    new: () => (canAct.value ? navigate({ page: "new" }) : false),
    help: () => void (overlay.value = "help"),
    palette: () => void (overlay.value = overlay.value === "palette" ? null : "palette"),
    theme: switchTheme,
    back: () => (route.value.page === "runs" ? false : navigate(RUNS_ROUTE)),
  });
  if (unauthorized.value) return <NoToken />;
  return (
    <>
      <Bar />
      <p class="hidden" role="status">
        {waitList.value.length > 0 && `${formatPlural(waitList.value.length, "question")} for you`}
      </p>
      {lostAt.value !== null && (
        <div class="banner" role="alert">
          The connection to the server is lost. The page shows the state as of {formatClock(lostAt.value)}; orders are
          disabled.
        </div>
      )}
      {health.value?.read_only && <div class="banner quiet">This server is read-only: it takes no orders.</div>}
      <main id="main">
        <CurrentView route={route.value} />
      </main>
      {overlay.value === "palette" && <Palette onClose={closeOverlay} />}
      {overlay.value === "help" && <Help onClose={closeOverlay} />}
      <Notice />
    </>
  );
}

function CurrentView({ route: { ...to } }: { route: Route }): JSX.Element {
  if (to.page === "run") return <RunPage key={to.run} route={to} />;
  if (to.page === "waits") return <Waits />;
  if (to.page === "new") return <NewRun />;
  return <Runs search={to.search} />;
}

function Bar(): JSX.Element {
  const { page } = route.value;
  const count = waitList.value.length;
  return (
    <header class="bar">
      <a class="brand" href="#/">
        swarmc
      </a>
      <nav aria-label="Pages">
        <a href="#/" aria-current={page === "runs" ? "page" : undefined}>
          Runs
        </a>
        <a href={formatRoute({ page: "waits" })} aria-current={page === "waits" ? "page" : undefined}>
          Waits{count > 0 && <span class="badge">{count}</span>}
        </a>
      </nav>
      <span class="spacer" />
      <button type="button" class="quiet" onClick={() => runAction("palette")}>
        Go to <kbd>Ctrl K</kbd>
      </button>
      <button type="button" class="quiet wide-only" onClick={switchTheme}>
        Theme: {theme.value} <kbd>y</kbd>
      </button>
      <button type="button" class="quiet" onClick={() => runAction("help")}>
        Keys <kbd>?</kbd>
      </button>
    </header>
  );
}

function NoToken(): JSX.Element {
  return (
    <main class="no-token">
      <h1>swarmc</h1>
      <p>
        Open the address that <code>swarmc serve</code> printed: it holds the token that this page needs.
      </p>
    </main>
  );
}
