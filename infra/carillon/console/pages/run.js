// @ts-check
// One run: its attempts, its result, its log, live until it has ended.
import { api } from "../lib/api.js";
import { attempt, confirm } from "../lib/feedback.js";
import { html, useEffect, useState } from "../lib/html.js";
import { parsed } from "../lib/json.js";
import { useKeys } from "../lib/keys.js";
import { Callout, Code, Figures, Head, Loaded, Writing } from "../lib/parts.js";
import { go, jobHref } from "../lib/router.js";
import { may } from "../lib/session.js";
import { Mark, Status } from "../lib/status.js";
import { useLoad } from "../lib/store.js";
import { Time, clock, duration } from "../lib/time.js";
import { secondsOf } from "../lib/timeline.js";

/** @typedef {import("../types.d.ts").RunDetail} Run */

const FINAL = new Set(["succeeded", "dead", "timed_out", "skipped", "cancelled", "missed"]);
const DEAD = new Set(["dead", "timed_out"]);

/** @param {{ params: { job_id: string, run_id: string } }} props */
export default function RunPage({ params: { job_id, run_id } }) {
  const [isOver, setOver] = useState(false);
  const load = useLoad(() => api.get("/jobs/{job_id}/runs/{run_id}", { job_id, run_id }), [run_id], { every: isOver ? 0 : 1 });
  const job = useLoad(() => api.get("/jobs/{job_id}", { job_id }), [job_id]);
  const run = /** @type {Run | null} */ (load.data);
  useEffect(() => setOver(run !== null && FINAL.has(run.status)), [run?.status]);
  const isDead = run !== null && DEAD.has(run.status) && !run.settled;

  const cancel = async () => {
    if (!(await confirm({ title: "Cancel this run?", yes: "Cancel the run", isDangerous: true, body: html`<p>A call that is under way is stopped. The job goes on.</p>` }))) return;
    if (await attempt("Cancelled", () => api.post("/jobs/{job_id}/runs/{run_id}/cancel", { job_id, run_id }))) await load.again();
  };
  const redrive = async () => {
    const made = await attempt("Redriven: it starts in a moment", () => api.post("/dead-letters/{run_id}/redrive", { run_id }));
    if (made) go(`/jobs/${encodeURIComponent(job_id)}/runs/${encodeURIComponent(made.run_id ?? run_id)}`);
  };
  const discard = async () => {
    if (!(await confirm({ title: "Discard this dead letter?", yes: "Discard", isDangerous: true, body: html`<p>It stays in the history, and nobody has to look at it again.</p>` }))) return;
    if ((await attempt("Discarded", () => api.delete("/dead-letters/{run_id}", { run_id }))) !== undefined) await load.again();
  };
  useKeys({
    ...(isDead && may() ? { r: ["redrive", redrive], d: ["discard", discard] } : {}),
    ...(run && !isOver && may() ? { c: ["cancel", cancel] } : {}),
  });
  const name = job.data?.name ?? "the job";
  return html`<${Loaded} of=${load}>${(/** @type {Run} */ found) => html`
    <${Head} title=${html`Run of ${name}`} back=${{ href: jobHref(job_id), words: name }}
      sub=${html`<${Status} of=${found.status} /> <span class="mono">${found.run_id}</span> ${found.settled && html`<span class="chip">${found.settled}</span>`}`}>
      <${Writing}>
        ${!FINAL.has(found.status) && html`<button type="button" onClick=${cancel} title="c">Cancel…</button>`}
        ${isDead && html`<button type="button" class="primary" onClick=${redrive} title="r">Redrive</button>
          <button type="button" onClick=${discard} title="d">Discard…</button>`}
      <//>
    <//>
    ${found.error && html`<${Callout} tone="bad" title=${found.error.kind}>${found.error.message}${found.reason ? ` (${found.reason})` : ""}<//>`}
    ${!found.error && found.reason && html`<${Callout} title=${found.reason}>${found.note ?? "The run did not start for this reason."}<//>`}
    <div class="stack">
      <section class="card"><div class="body"><${Figures} of=${[
        ["Fired", html`<${Time} at=${found.fire_at} as="absolute" />`],
        ["Kind", found.redrive ? `redrive ${found.redrive}` : found.kind],
        ["Lag", duration(found.lag_seconds)],
        ["Took", duration(secondsOf(found))],
        ["Attempt", found.attempt],
        ...(found.next_attempt_at ? [["Next attempt", html`<${Time} at=${found.next_attempt_at} />`]] : []),
      ]} /></div></section>
      <${Attempts} run=${found} />
      ${found.request_note && html`<p class="quiet">Asked for: “${found.request_note}”</p>`}
      ${job.data?.payload !== null && job.data?.payload !== undefined &&
      html`<${Code} label=${found.payload_overridden ? "The job's payload; this run had one of its own" : "Payload"} text=${JSON.stringify(job.data.payload, null, 2)} />`}
      ${found.result !== null && html`<${Code} label="Result" text=${pretty(found.result)} />`}
      <${Logs} run=${found} isOver=${isOver} target=${job.data?.target} />
    </div>`}<//>`;
}

/** @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(parsed(text), null, 2);
  } catch {
    return text;
  }
}

/** @param {{ run: Run }} props */
const Attempts = ({ run }) =>
  run.attempts.length
    ? html`<section class="card" aria-label="Attempts"><h2>Attempts</h2>
        <ol class="attempts">${run.attempts.map((each, at) => {
          const status = each.error ? (at === run.attempts.length - 1 && run.status === "retrying" ? "retrying" : "failed") : each.finished_at ? "succeeded" : "running";
          const took = each.finished_at ? (Date.parse(each.finished_at) - Date.parse(each.started_at)) / 1000 : null;
          return html`<li key=${each.attempt}><${Mark} of=${status} />
            <span class="nowrap">${each.attempt}. ${clock(each.started_at)}</span>
            <span class="quiet nowrap">${took === null ? "under way" : duration(took)}</span>
            <span>${each.error ? html`<strong>${each.error.kind}</strong> ${each.error.message}` : html`<span class="quiet">${status}</span>`}</span></li>`;
        })}</ol></section>`
    : null;

const MOST_PAGES = 10;
/** Lines come some seconds after they were written, also the last ones of a run. */
const LATE_MS = 60_000;

/** All lines that there are by now: a page may be empty, and have more behind it. @param {string} run_id @param {AbortSignal} signal */
async function linesOf(run_id, signal) {
  const found = [];
  /** @type {string | null} */
  let cursor = null;
  for (let at = 0; at < MOST_PAGES; at += 1) {
    /** @type {any} */
    const page = await api.get(/** @type {any} */ ("/runs/{run_id}/logs"), { run_id, cursor }, { signal });
    found.push(...page.items);
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  return { items: found, isWhole: !cursor };
}

/** Only tasks run where we can read what they write. @param {{ run: Run, isOver: boolean, target: any }} props */
function Logs({ run: { run_id, finished_at: endedAt }, isOver, target }) {
  const isTask = target?.type === "task";
  const isOld = isOver && endedAt !== null && Date.now() - Date.parse(endedAt) > LATE_MS;
  const load = useLoad(async (signal) => (isTask ? linesOf(run_id, signal) : null), [run_id, isOver, isTask], { every: isOld ? 0 : 5 });
  /** @type {{ at: string, level: string, message: string }[]} */
  const items = load.data?.items ?? [];
  return html`<section class="card" aria-label="Log"><h2>Log ${!isOver && isTask && html`<span class="chip">live</span>`}</h2>
    <div class="body">${
      items.length
        ? html`<ol class="log">${items.map(({ at, level, message }, index) => html`<li key=${index} class=${level.toLowerCase()}><time datetime=${at}>${clock(at)}</time><span>${level}</span><code>${message}</code></li>`)}</ol>${load.data?.isWhole ? null : html`<p class="quiet">The first lines: <code>carillon logs ${run_id}</code> has all.</p>`}`
        : html`<p class="quiet">${target && !isTask ? `No log is kept of a run whose target is ${target.type}: it has its own.` : load.problem ? load.problem.detail || load.problem.title : !target || load.waiting ? "Loading …" : load.data?.isWhole ? "Its target has written nothing." : "None yet: so much is logged besides that not all of it was searched."}</p>`
    }</div></section>`;
}
