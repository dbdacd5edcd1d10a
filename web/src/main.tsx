// Starts the page. In: the document and its address. Out: the page in `#app`.

import "./styles/main.css";
import { render } from "preact";
import { takeToken } from "./api.ts";
import { followKeys } from "./keys.ts";
import { followServer } from "./live.ts";
import { followAddress } from "./router.ts";
import { followTheme } from "./theme.ts";
import { App } from "./views/app.tsx";

takeToken();
// A person may open the printed address in a tab that shows the page already.
window.addEventListener("hashchange", () => {
  if (takeToken()) location.reload();
});
followTheme();
followAddress();
followKeys();
followServer();

const root = document.getElementById("app");
if (root) render(<App />, root);
