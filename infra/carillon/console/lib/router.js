// @ts-check
// Addresses stand behind `#`: they work under any path, and no server needs to know them.
import { confirm } from "./feedback.js";
import { html, useEffect, useLayoutEffect, useState } from "./html.js";

/** @typedef {Record<string, string>} Words */
/** @typedef {{ path: string, query: Words }} Place */

/** @returns {Place} */
export function place() {
  const [path = "", query = ""] = location.hash.slice(1).split("?");
  return { path: path || "/jobs", query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a page. @param {string} path @param {Record<string, unknown>} [query] */
export function href(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const words = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#${path}${words && `?${words}`}`;
}

/** The page of a job. @param {string} jobId */
export const jobHref = (jobId) => href(`/jobs/${encodeURIComponent(jobId)}`);

/** The page of a run. @param {string} jobId @param {string} runId */
export const runHref = (jobId, runId) => href(`/jobs/${encodeURIComponent(jobId)}/runs/${encodeURIComponent(runId)}`);

/** Go to a page. @param {string} path @param {Record<string, unknown>} [query] */
export function go(path, query) {
  location.hash = href(path, query);
}

/** Change what stands behind `?`, without a step in the browser's history. @param {Record<string, unknown>} changes */
export function setQuery(changes) {
  const { path, query } = place();
  history.replaceState(null, "", href(path, { ...query, ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** True while leaving the page would lose what is written there. */
let isUnsaved = false;
addEventListener("beforeunload", (event) => isUnsaved && event.preventDefault());

/** Have a question asked before this page is left. @param {boolean} wanted */
export function useUnsaved(wanted) {
  // Before the next event: whoever saves goes on at once.
  useLayoutEffect(() => {
    isUnsaved = wanted;
    return () => void (isUnsaved = false);
  }, [wanted]);
}

/** Whether the page may be left; asks where something would be lost. */
export async function mayLeave() {
  const body = html`<p>What you have written here is lost then.</p>`;
  if (isUnsaved && !(await confirm({ title: "Leave without saving?", yes: "Leave", isDangerous: true, body }))) return false;
  isUnsaved = false;
  return true;
}

/** The present place; renders anew when it changes. */
export function usePlace() {
  const [now, setNow] = useState(place);
  useEffect(() => {
    let shown = location.hash;
    const look = async () => {
      const wanted = location.hash;
      if (isUnsaved && wanted !== shown) {
        // The browser has gone there already.
        history.pushState(null, "", shown);
        return (await mayLeave()) && location.replace(wanted);
      }
      shown = wanted;
      setNow(place());
    };
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  return now;
}

/** A part of a path; one that is no text, as "%", stands for itself. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * The values of a pattern's `:names` in a path, or null where it is none of the pattern.
 * @param {string} pattern @param {string} path @returns {Words | null}
 */
export function match(pattern, path) {
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return null;
  /** @type {Words} */
  const values = {};
  for (const [at, part] of wanted.entries()) {
    const own = decoded(given[at] ?? "");
    if (part.startsWith(":")) values[part.slice(1)] = own;
    else if (part !== own) return null;
  }
  return values;
}
