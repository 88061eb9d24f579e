// @ts-check
// Filters that pages share: a job by its name, a span of time; the names of jobs of which only the id is told.
import { api } from "./api.js";
import { html, useEffect, useId, useState } from "./html.js";
import { clockFace } from "./time.js";

/** @type {Map<string, string>} */
const names = new Map();
const AT_ONCE = 12;

/** The names of jobs by their ids, once they are known: an id stands for itself until then. @param {(string | null)[]} ids */
export function useNames(ids) {
  const [, setCount] = useState(0);
  const wanted = [...new Set(ids)].filter((id) => id && !names.has(id)).slice(0, AT_ONCE);
  useEffect(() => {
    for (const id of wanted) {
      names.set(/** @type {string} */ (id), /** @type {string} */ (id));
      const named = api.get("/jobs/{job_id}", { job_id: id });
      named.then((job) => names.set(job.job_id, job.name), () => {}).then(() => setCount((count) => count + 1));
    }
  }, [wanted.join()]);
  return (/** @type {string} */ id) => names.get(id) ?? id;
}

/** One job, found by the beginning of its name; its id is the value. @param {{ value: string, set: (id: string) => void }} props */
export function JobFilter({ value, set }) {
  const list = useId();
  const nameOf = useNames([value || null]);
  const [found, setFound] = useState(/** @type {{ q: string, items: { job_id: string, name: string }[] }} */ ({ q: "", items: [] }));
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  /** What begins with the text that stands there now; of no earlier one, whose only job may be another. @param {any} target */
  const find = async (target) => {
    const q = target.value;
    if (q === found.q) return found.items;
    const page = await api.get("/jobs", /** @type {any} */ ({ view: "summary", q, limit: 10 })).catch(() => null);
    if (page && q === target.value) setFound({ q, items: page.items });
    return page?.items ?? [];
  };
  /** @param {any} event */
  const look = ({ target }) => {
    setTyped(target.value);
    return find(target);
  };
  /** @param {any} event */
  const choose = async ({ target }) => {
    const text = target.value.trim().toLowerCase();
    const items = text ? await find(target) : [];
    const job = items.find(({ name }) => name.toLowerCase() === text) ?? (items.length === 1 ? items[0] : undefined);
    if (job) names.set(job.job_id, job.name);
    setTyped(null);
    set(text ? job?.job_id ?? value : "");
  };
  return html`<label class="choice"><span>Job</span>
    <input list=${list} value=${typed ?? (value && nameOf(value))} placeholder="any" autocomplete="off" onInput=${look} onChange=${choose} />
    <datalist id=${list}>${found.items.map(({ job_id, name }) => html`<option key=${job_id} value=${name} />`)}</datalist></label>`;
}

/** A tag as the API takes it, of what is written as `team=billing`. @param {string | undefined} text */
export const tagOf = (text) => text?.replace(/^([^=:]*)=/, "$1:");

/** An instant as a field has it, on the clock that the pages show. @param {string | undefined} at */
function wallClock(at) {
  if (!at) return "";
  const instant = new Date(at);
  const shift = clockFace.get() === "utc" ? 0 : instant.getTimezoneOffset() * 60_000;
  return new Date(instant.getTime() - shift).toISOString().slice(0, 16);
}

/** @param {{ from?: string, to?: string, set: (changes: { from?: string, to?: string }) => void }} props */
export function SpanFilter({ from, to, set }) {
  clockFace.use();
  /** @param {string} text */
  const instant = (text) => (text ? new Date(clockFace.get() === "utc" ? `${text}Z` : text).toISOString().replace(".000", "") : "");
  /** @param {string} label @param {string | undefined} value @param {(value: string) => void} put */
  const field = (label, value, put) =>
    html`<label class="choice time"><span>${label}</span>
      <input type="datetime-local" value=${wallClock(value)} onChange=${(/** @type {any} */ event) => put(instant(event.target.value))} /></label>`;
  return html`${field("From", from, (value) => set({ from: value }))}${field("To", to, (value) => set({ to: value }))}`;
}
