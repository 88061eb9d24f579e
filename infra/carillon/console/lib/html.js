// @ts-check
/* How a page is added
 *
 * 1. `pages/NAME.js` exports `default function Page({ params, query })`, a component. `params` are the parts of the
 *    route's pattern, `query` what stands behind `?` in the address; `setQuery({ name: value })` changes that.
 * 2. `routes.js` has a line for it: pattern, title, the key behind `g` where the bar names it, and its import.
 * 3. It reads by `useLoad(() => api.get("/path/{id}", { id }), [id])` (store.js), or live with `{ every: 2 }`, and
 *    shows `<${Loaded} of=${load}>` (parts.js), which has words for waiting and for problems. Writing goes by
 *    `attempt("Paused", () => api.post(...))` (feedback.js), which tells the end of it; `confirm({...})` asks before.
 *    Buttons that write are `<${Writing}>`: who may only read gets none; with
 *    `role="admin"` an editor gets none, either. Keys and all else ask `may()` (session.js) while they are rendered.
 * 4. `useKeys({ r: ["redrive", () => ...] })` (keys.js) adds keys, and their line in the help.
 * 5. Tables are `<${Table}>` (table.js): j and k move among rows, x selects. Instants are `<${Time} at=...>`
 *    (time.js). Statuses are `<${Status} of=...>` and `<${Strip}>` (status.js): a shape and a word, never colour alone.
 * 6. Styles stand in app.css, by the classes that are there; charts are SVG of their own. Nothing sets HTML: the
 *    policy has Trusted Types without any policy. `style=${{ ... }}` is free.
 * 7. The API's types come from its OpenAPI description (`make client-types`, `make check`); types.d.ts names them.
 *    tests/browser opens each page, light and dark; its PAGES names yours.
 * 8. What is served is one file of all modules (bundle.py says which imports and exports it knows).
 * 9. For jobs by name and spans of time there is filters.js, for operations and long work progress.js.
 */
import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

export { Fragment, createContext, render } from "../vendor/preact.js";
export {
  useCallback, useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState,
} from "../vendor/hooks.js";

/** Markup as a template: html`<p class="quiet">${text}</p>`. */
export const html = /** @type {(strings: TemplateStringsArray, ...values: unknown[]) => any} */ (htm.bind(h));

/** Class names without the false ones. @param {...(string | false | null | undefined)} names */
export const classes = (...names) => names.filter(Boolean).join(" ");
