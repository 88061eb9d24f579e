// @ts-check
// The frame: the bar, the page of the address, the keys of all pages.
import { api } from "./lib/api.js";
import { Dialog, Feedback } from "./lib/feedback.js";
import { html, render, useEffect, useErrorBoundary, useState } from "./lib/html.js";
import { keysInForce, useKeys } from "./lib/keys.js";
import { Trouble } from "./lib/parts.js";
import { go, href, match, mayLeave, usePlace } from "./lib/router.js";
import { actFor, begin, may, setRole, team } from "./lib/session.js";
import { preference, useLoad } from "./lib/store.js";
import { clockFace, zoneName } from "./lib/time.js";
import { ROUTES } from "./routes.js";

/** "light", "dark", or "system". */
const theme = preference("theme", "system");

function showTheme() {
  const wanted = theme.get();
  if (wanted === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = wanted;
}

function nextTheme() {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = theme.get() === "system" ? (isDark ? "dark" : "light") : theme.get();
  theme.set(now === "dark" ? "light" : "dark");
  showTheme();
}

showTheme();

const flipClock = () => clockFace.set(clockFace.get() === "utc" ? "local" : "utc");
const search = () => /** @type {HTMLElement | null} */ (document.querySelector("[data-search]"))?.focus();

/** @param {{ path: string, caller: any, isUnknown: boolean, signOut: (() => void) | null }} props */
function Bar({ path, caller, isUnknown, signOut }) {
  const shown = ROUTES.filter(({ key, operators }) => key && (!operators || caller?.is_operator));
  const isDark = theme.use() === "dark";
  const status = /** @type {any} */ (useLoad(() => api.get("/status"), [], { every: 30 }).data);
  return html`<nav class="bar" aria-label="Pages">
    <a class="brand" href=${href("/jobs")}><${Bell} />Carillon</a>
    <div class="pages">
      ${shown.map(
        (route) => html`<a key=${route.path} href=${href(route.path)} title=${`g ${route.key}`}
          aria-current=${`/${path.split("/")[1]}` === route.path ? "page" : undefined}>${route.title}${route.badge && status?.[route.badge] > 0 && html` <span class="badge">${status[route.badge]}</span>`}</a>`,
      )}
    </div>
    <div class="tools">
      ${isUnknown && html`<span class="chip warn" role="alert">your teams are not known yet</span>`}
      ${!may() && html`<span class="chip">read only</span>`}
      ${Object.keys(caller?.teams ?? {}).length > 0 && html`<select aria-label="Act for" value=${team()} onChange=${chooseTeam}>
        <option value="">yourself</option>
        ${Object.entries(caller.teams).map(([name, role]) => html`<option key=${name} value=${name}>${name} (${role})</option>`)}
      </select>`}
      ${caller?.name && html`<span class="who" title=${caller.owner}>${caller.name}</span>`}
      <button type="button" class="plain" title="UTC or local time" onClick=${flipClock}>${zoneName()}</button>
      <button type="button" class="plain" title="Light or dark (t)" aria-label="Light or dark" onClick=${nextTheme}>${isDark ? "☾" : "☼"}</button>
      <button type="button" class="plain" title="Keys (?)" aria-label="Keys" onClick=${() => dispatchEvent(new Event("carillon-help"))}>?</button>
      ${signOut && html`<button type="button" class="plain" onClick=${async () => (await mayLeave()) && signOut()}>Sign out</button>`}
    </div>
  </nav>`;
}

/** @param {any} event */
async function chooseTeam({ target }) {
  if (await mayLeave()) actFor(target.value);
  else target.value = team();
}

const Bell = () =>
  html`<svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true"><path fill="currentColor" d="M10 2c-.8 0-1.4.6-1.4 1.3v.5c-2.4.6-3.9 2.5-3.9 5 0 3.6-1 4.9-1.7 5.6-.3.4-.1 1 .4 1h13.2c.5 0 .7-.6.4-1-.7-.7-1.7-2-1.7-5.6 0-2.5-1.5-4.4-3.9-5v-.5C11.4 2.6 10.8 2 10 2zM8 16.5a2 2 0 0 0 4 0z"/></svg>`;

/** @type {Map<string, any>} */
const pages = new Map();

/** The component of the page at an address, once its module is there. @param {{ place: import("./lib/router.js").Place, caller: any }} props */
function Page({ place, caller }) {
  const [, setCount] = useState(0);
  const [problem, forget] = useErrorBoundary();
  const found = ROUTES.map((route) => ({ route, params: match(route.path, place.path) })).find(({ params }) => params);
  const route = found?.route;
  useEffect(() => {
    document.title = `${route?.title ?? "Not found"} · Carillon`;
    forget?.();
    if (!route || pages.has(route.path)) return;
    route.load().then((module) => {
      pages.set(route.path, module.default);
      setCount((count) => count + 1);
    }, (error) => setCount(() => { throw error; }));
  }, [route]);
  if (problem) return html`<${Trouble} problem=${problem} again=${forget} />`;
  if (!route) return html`<${Trouble} problem=${{ title: "No such page", detail: place.path }} />`;
  const Shown = pages.get(route.path);
  return Shown ? html`<${Shown} key=${`${route.path} ${Object.values(found.params ?? {}).join(" ")}`} params=${found.params} query=${place.query} caller=${caller} />` : null;
}

const MORE_KEYS = [["Enter", "open what has the focus"], ["Esc", "leave a field, close a dialog"]];

/** @param {{ close: () => void }} props */
const Help = ({ close }) =>
  html`<${Dialog} title="Keys" close=${close}>
    <dl class="keys">
      ${[...keysInForce(), ...MORE_KEYS].map(([key, words]) => html`<div key=${key}><dt>${(key ?? "").split(" ").map((each) => html`<kbd>${each}</kbd>`)}</dt><dd>${words}</dd></div>`)}
    </dl>
  <//>`;

/** @param {{ signOut: (() => void) | null }} props */
function App({ signOut }) {
  const place = usePlace();
  const [isHelped, setHelped] = useState(false);
  clockFace.use();
  const { problem } = useLoad(whoAsks, [], { every: caller ? 0 : WHO_EVERY });
  useEffect(() => {
    const help = () => setHelped(true);
    addEventListener("carillon-help", help);
    return () => removeEventListener("carillon-help", help);
  }, []);
  useKeys({
    "/": ["search", search],
    ...Object.fromEntries(ROUTES.filter(({ key }) => key).map(({ key, title, path }) => [`g ${key}`, [title, () => go(path)]])),
    ...(may() ? { n: ["new job", () => go("/new")] } : {}),
    t: ["light or dark", nextTheme],
    u: ["UTC or local time", flipClock],
    "?": ["these keys", () => setHelped(true)],
  });
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>To the content</a>
    <${Bar} path=${place.path} caller=${caller} isUnknown=${problem !== null} signOut=${signOut} />
    <main id="main" tabindex="-1"><${Page} place=${place} caller=${caller} /></main>
    ${isHelped && html`<${Help} close=${() => setHelped(false)} />`}
    <${Feedback} />
  `;
}

/** What the deployment says of the caller; asked again until it has. @type {any} */
let caller = null;
const WHO_EVERY = 5;

async function whoAsks() {
  try {
    caller ??= /** @type {any} */ (await api.get("/deployment")).caller;
    setRole(caller?.role);
    return caller;
  } catch (/** @type {any} */ problem) {
    // A member no more: whoever is left alone with a team's name could choose no other.
    if (problem.status === 403 && team()) actFor("");
    throw problem;
  }
}

/** @param {any} problem */
const Refused = (problem) => html`<main><${Trouble} problem=${{ title: "Not signed in", detail: problem.message }} again=${() => location.assign(location.pathname)} /></main>`;

const shown = await begin().then(({ signOut }) => html`<${App} signOut=${signOut} />`, Refused);
render(shown, /** @type {HTMLElement} */ (document.getElementById("app")));
