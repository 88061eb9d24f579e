// @ts-check
// One job: what it does, what it did, what comes.
import * as acting from "../lib/acting.js";
import { api, onceKey } from "../lib/api.js";
import { commandOf, curlOf, manifestOf, settingsOf } from "../lib/definition.js";
import { scheduleOf } from "../lib/draft.js";
import { attempt, confirm } from "../lib/feedback.js";
import { html, useState } from "../lib/html.js";
import { useKeys } from "../lib/keys.js";
import { Callout, Code, Empty, Figures, Head, Loaded, More, Tabs, Writing, targetText } from "../lib/parts.js";
import { go, href, runHref, setQuery } from "../lib/router.js";
import { may } from "../lib/session.js";
import { Status } from "../lib/status.js";
import { useLoad, usePages } from "../lib/store.js";
import { Table } from "../lib/table.js";
import { Time, clock, duration } from "../lib/time.js";
import { Timeline, secondsOf } from "../lib/timeline.js";

/** @typedef {import("../types.d.ts").Job} Job */
/** @typedef {import("../types.d.ts").Run} Run */
/** @typedef {import("../types.d.ts").Change} Change */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** @type {[id: string, words: string][]} */
const SPANS = [["24", "24 h"], ["168", "7 days"], ["720", "30 days"]];
const MOST = 300;
const NO_RUNS = new Set(["callback", "missed", "watch"]);
const ENDED_WELL = new Set(["succeeded"]);
const ENDED = new Set(["succeeded", "dead", "timed_out", "missed"]);

/** The newest runs of a span, up to a number that a chart can show. @param {string} job_id @param {number} hours */
async function runsOf(job_id, hours) {
  const from = new Date(Date.now() - hours * HOUR).toISOString();
  /** @type {Run[]} */
  const found = [];
  /** @type {string | null} */
  let cursor = null;
  do {
    const page = /** @type {{ items: Run[], next_cursor: string | null }} */ (
      await api.get("/jobs/{job_id}/runs", { job_id, from, limit: 100, cursor })
    );
    found.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor && found.length < MOST);
  return { runs: found, isWhole: !cursor };
}

/** @param {(number | null | undefined)[]} values @param {number} share */
function percentile(values, share) {
  const known = values.filter((value) => value !== null && value !== undefined).sort((a, b) => Number(a) - Number(b));
  return known.length ? known[Math.min(known.length - 1, Math.floor(share * known.length))] : null;
}

/** @param {{ params: { job_id: string }, query: Record<string, string> }} props */
export default function JobPage({ params: { job_id }, query }) {
  const job = useLoad(() => api.get("/jobs/{job_id}", { job_id }), [job_id], { every: 3 });
  return html`<${Loaded} of=${job}>${(/** @type {Job} */ found) => html`<${Whole} job=${found} query=${query} again=${job.again} />`}<//>`;
}

/** @param {{ job: Job, query: Record<string, string>, again: () => Promise<void> }} props */
function Whole({ job, query, again }) {
  const { job_id } = job;
  const hours = Number(query.span ?? 24);
  const history = useLoad(() => runsOf(job_id, hours), [job_id, hours], { every: 3 });
  const next = useLoad(() => api.get("/jobs/{job_id}/upcoming", { job_id, count: 10 }), [job_id, job.revision, job.state, job.next_fire_at]);
  const gaps = useLoad(() => gapsOf(job_id, hours), [job_id, hours], { every: 30 });
  const tab = query.tab ?? "runs";
  /** @param {Promise<unknown>} act */
  const then = async (act) => {
    if (await act) await Promise.all([again(), history.again()]);
  };
  const isPaused = job.state === "paused";
  const pause = () => then(isPaused ? acting.resume([job]) : acting.pause([job]));
  const run = () => then(acting.runNow(job));
  const edit = () => go(`/jobs/${encodeURIComponent(job_id)}/edit`);
  const remove = async () => (await acting.remove([job])) && go("/jobs");
  useKeys(!may() || job.state === "deleted" ? {} : { p: [isPaused ? "resume" : "pause", pause], r: ["run now", run], e: ["edit", edit] });
  const sub = html`<${Status} of=${job.state} /> <span>revision ${job.revision}</span> <span>${targetText(job.target)}</span>
    ${job.managed_by && html`<span>defined in ${job.managed_by}</span>`}
    ${Object.entries(job.tags ?? {}).map(([key, value]) => html` <span class="chip">${key}=${value}</span>`)}`;
  return html`
    <${Head} title=${job.name} back=${{ href: href("/jobs"), words: "Jobs" }} sub=${sub}>
      ${job.state !== "deleted" &&
      html`<${Writing}>
        <button type="button" onClick=${run} title="r">Run now…</button>
        <button type="button" onClick=${pause} title="p">${isPaused ? "Resume" : "Pause…"}</button>
        <a class="button" href=${href(`/jobs/${encodeURIComponent(job_id)}/edit`)} title="e">Edit</a>
        <button type="button" onClick=${remove}>Delete…</button>
      <//>`}
    <//>
    ${isPaused && html`<${Callout} title=${job.resume_at ? html`Paused until <${Time} at=${job.resume_at} as="absolute" />` : "Paused"}>${job.note ?? "Nothing fires until somebody resumes it."}<//>`}
    ${job.slow && html`<${Callout} title="In lane slow">${job.slow.reason}<//>`}
    <div class="columns">
      <div class="stack">
        <section class="card" aria-label="Timeline">
          <header><p class="sentence">${job.sentence}</p>
            <${Tabs} label="Span" of=${SPANS} at=${String(hours)} go=${(/** @type {string} */ span) => setQuery({ span })} /></header>
          <div class="body">
            <${Loaded} of=${history}>${(/** @type {any} */ { runs, isWhole }) => html`
              <${Timeline} runs=${runs} next=${next.data?.items ?? []} hours=${hours} now=${Date.now()} />
              <${Summary} runs=${runs} isWhole=${isWhole} gaps=${gaps.data} />`}<//>
          </div>
        </section>
        <${Tabs} label="View" of=${[["runs", "Runs"], ["changes", "Changes"], ["definition", "Definition"]]} at=${tab} go=${(/** @type {string} */ id) => setQuery({ tab: id })} />
        ${tab === "runs" ? html`<${Runs} job=${job} />` : tab === "changes" ? html`<${Changes} job=${job} />` : html`<${Definition} job=${job} />`}
      </div>
      <div class="stack">
        <${Next} load=${next} job=${job} />
        <${Missed} job=${job} then=${then} />
      </div>
    </div>
  `;
}

/** What was due in a span and has left no run; null where too much was. @param {string} job_id @param {number} hours @returns {Promise<Set<number> | null>} */
async function gapsOf(job_id, hours) {
  const [from, to] = [Date.now() - hours * HOUR, Date.now() - MINUTE].map((at) => new Date(at).toISOString());
  const { items, complete } = await api.get("/jobs/{job_id}/missed", { job_id, from, to, limit: 100 });
  return complete ? new Set(items.filter(({ run_id }) => !run_id).map(({ fire_at }) => Date.parse(fire_at))) : null;
}

/** The share of runs that have succeeded; none while something that was due has left no run. What was missed counts where no run has come since.
 * @param {Run[]} rows @param {Set<number>} gaps */
function rateOf(rows, gaps) {
  const known = new Set(rows.map(({ fire_at }) => Date.parse(fire_at)));
  const left = [...gaps].filter((at) => !known.has(at)).length;
  if (left) return html`– <span class="quiet small-text">${left} left no run</span>`;
  const runs = runsAmong(rows);
  const ran = new Set(runs.map(({ fire_at }) => fire_at));
  const ended = [...runs, ...rows.filter(({ kind, fire_at }) => kind === "watch" && !ran.has(fire_at))].filter(({ status }) => ENDED.has(status));
  const good = ended.filter(({ status }) => ENDED_WELL.has(status)).length;
  // Never rounded up to a hundred.
  return ended.length ? `${good === ended.length ? 100 : (Math.floor((1000 * good) / ended.length) / 10).toFixed(1)} %` : "–";
}

/** Without what is no run of the job's, and dead letters in whose place another run has come. @param {Run[]} rows */
const runsAmong = (rows) => rows.filter(({ kind, settled }) => !NO_RUNS.has(kind) && settled !== "redriven");

/** @param {{ runs: Run[], isWhole: boolean, gaps: Set<number> | null }} props */
function Summary({ runs: rows, isWhole, gaps }) {
  const runs = runsAmong(rows);
  const lags = runs.filter(({ kind }) => kind === "scheduled").map(({ lag_seconds }) => lag_seconds);
  const last = runs[0];
  return html`<${Figures} of=${[
    ["Last run", last ? html`<${Status} of=${last.status} /> <span class="quiet small-text"><${Time} at=${last.fire_at} /></span>` : "none yet"],
    ["Success", gaps ? rateOf(rows, gaps) : "–"],
    ["Lag p99", duration(percentile(lags, 0.99))],
    ["Duration p50", duration(percentile(runs.map(secondsOf), 0.5))],
    [isWhole ? "Runs" : "Runs shown", isWhole ? runs.length : `newest ${runs.length}`],
  ]} />`;
}

/** @param {{ load: import("../lib/store.js").Load<any>, job: Job }} props */
function Next({ load, job }) {
  const isAlive = job.state === "active" && job.schedule;
  const preview = useLoad(
    async () => (isAlive ? api.post("/schedules/preview", {}, { ...scheduleOf(settingsOf(job)), count: 1 }) : null),
    [job.revision, job.state],
  );
  return html`<section class="card" aria-label="Next occurrences">
    <h2>Next</h2>
    <div class="body">
      <${Loaded} of=${load}>${(/** @type {{ items: import("../types.d.ts").Occurrence[] }} */ { items }) =>
        items.length
          ? html`<ol class="next">${items.map(({ fire_at, local, note }) => html`<li key=${fire_at}>
              <span><${Time} at=${fire_at} as="short" />${job.timezone !== "UTC" && html` <span class="quiet">${local.slice(11, 16)} local</span>`}</span>
              <span class="quiet"><${Time} at=${fire_at} /></span>
              ${note && html`<span class="chip warn">${note}</span>`}
            </li>`)}</ol>`
          : html`<p class="quiet">${job.state === "active" ? (job.after ? "It runs after another job." : "It never fires again.") : "Nothing while it is not active."}</p>`}<//>
      ${preview.data?.transitions.map(({ transition_at, effect }) => html`<p class="clocks" key=${transition_at}><span class="chip warn">clocks change</span> ${effect}.</p>`)}
    </div>
  </section>`;
}

/** @param {{ job: Job, then: (act: Promise<unknown>) => Promise<void> }} props */
function Missed({ job, then }) {
  const load = useLoad(async () => {
    // Nothing was missed before the job was there, and a backfill would run that, too.
    const from = new Date(Math.max(Date.now() - 24 * HOUR, Date.parse(job.created_at))).toISOString();
    return { ...(await api.get("/jobs/{job_id}/missed", { job_id: job.job_id, from, limit: 100 })), from };
  }, [job.job_id, job.created_at], { every: 30 });
  const newest = load.data?.items[0];
  if (!load.data || !newest) return null;
  const { from, items, complete } = load.data;
  const runThem = async () => {
    // Not until now: the API refuses what is to come, and this clock may be ahead of its own.
    const body = { from, to: newest.fire_at, only: "missed" };
    const isSure = await confirm({
      title: `Run ${complete ? "" : "at least "}${items.length} missed occurrences?`, yes: "Run them",
      body: html`<p>A backfill runs each with its own fire time, 60 a minute.</p>`,
    });
    return isSure && attempt("The backfill has begun", () => api.post("/jobs/{job_id}/backfill", { job_id: job.job_id }, body, onceKey()));
  };
  return html`<section class="card" aria-label="Missed">
    <h2>Missed in 24 h <${Writing}><button type="button" class="small" onClick=${() => then(runThem())}>Run them…</button><//></h2>
    <div class="body"><p><strong>${items.length}${complete ? "" : "+"}</strong> occurrences without a success, the newest <${Time} at=${newest.fire_at} />.</p></div>
  </section>`;
}

/** @type {import("../lib/table.js").Column<Run>[]} */
const COLUMNS = [
  { title: "Fired", kind: "main nowrap", cell: (run) => html`<a href=${runHref(run.job_id, run.run_id)}><${Time} at=${run.fire_at} as="short" /><span class="quiet">:${clock(run.fire_at).slice(6)}</span></a>` },
  { title: "Status", cell: (run) => html`<${Status} of=${run.status} />${run.settled && html` <span class="chip">${run.settled}</span>`}` },
  { title: "Kind", kind: "wide", cell: (run) => html`<span class="quiet">${run.redrive ? "redrive" : run.kind}</span>` },
  { title: "Attempt", kind: "number wide", cell: (run) => run.attempt },
  { title: "Lag", kind: "number", cell: (run) => duration(run.lag_seconds) },
  { title: "Took", kind: "number wide", cell: (run) => duration(secondsOf(run)) },
  { title: "Error", kind: "wide", cell: (run) => html`<span class="quiet">${run.error?.kind ?? run.reason ?? ""}</span>` },
];

/** @param {Run} run */
const idOf = ({ run_id }) => run_id;

/** @param {{ job: Job }} props */
function Runs({ job }) {
  const { job_id } = job;
  /** @param {{ cursor?: string | null }} at */
  const page = (at) => api.get("/jobs/{job_id}/runs", { job_id, limit: at.cursor ? 50 : 20, ...at });
  const { load, rows: runs, cursor, more } = usePages(page, idOf, [job_id], { every: 2 });
  return html`<${Loaded} of=${load}>${() =>
    runs.length || cursor
      ? html`<div class="card"><${Table} label="Runs" rows=${runs} id=${idOf} columns=${COLUMNS} /></div>
          <${More} cursor=${cursor} more=${() => attempt("Earlier runs", more)} />`
      : html`<${Empty} title="No runs yet">The first one appears here when the job fires.<//>`}<//>`;
}

/** @type {import("../lib/table.js").Column<Change>[]} */
const CHANGES = [
  { title: "When", kind: "main nowrap", cell: ({ at }) => html`<${Time} at=${at} as="short" />` },
  { title: "Who", cell: ({ by, via }) => html`${by.kind === "system" ? "Carillon" : by.name || by.id} <span class="quiet">${by.kind === "system" ? "" : via}</span>` },
  { title: "Did", cell: ({ action }) => action },
  { title: "What", kind: "wide", cell: ({ changed, note, ref }) => html`${changed.map(({ path, before, after }) => html`<div key=${path}>${path}: <span class="quiet">${JSON.stringify(before)} →</span> ${JSON.stringify(after)}</div>`)}<span class="quiet">${note ?? ref ?? ""}</span>` },
];

/** Who changed it, newest first. @param {{ job: Job }} props */
function Changes({ job: { job_id, revision, state } }) {
  /** @param {{ cursor?: string | null }} at */
  const page = (at) => api.get("/jobs/{job_id}/changes", { job_id, limit: 50, ...at });
  const { load, rows, cursor, more } = usePages(page, (/** @type {Change} */ change) => change.change_id, [job_id, revision, state]);
  return html`<${Loaded} of=${load}>${() =>
    rows.length || cursor
      ? html`<div class="card"><${Table} label="Changes" rows=${rows} id=${(/** @type {Change} */ change) => change.change_id} columns=${CHANGES} /></div>
          <${More} cursor=${cursor} more=${() => attempt("Earlier changes", more)} />`
      : html`<${Empty} title="No changes">None is kept of this job.<//>`}<//>`;
}

/** @param {{ job: Job }} props */
function Definition({ job }) {
  const [form, setForm] = useState("yaml");
  /** @type {Record<string, [string, () => string]>} */
  const forms = {
    yaml: ["YAML", () => manifestOf([job])],
    json: ["JSON", () => `${JSON.stringify(settingsOf(job), null, 2)}\n`],
    curl: ["curl", () => curlOf(job)],
    cli: ["Command line", () => commandOf(job)],
  };
  const [words, text] = forms[form] ?? ["", () => ""];
  return html`<div>
    ${job.managed_by && html`<${Callout} tone="info">Defined in ${job.managed_by}: change it there, and apply it.<//>`}
    <${Tabs} label="Form" of=${Object.entries(forms).map(([id, [name]]) => [id, name])} at=${form} go=${setForm} />
    <div class="spaced"><${Code} label=${words} text=${text()} /></div>
  </div>`;
}
