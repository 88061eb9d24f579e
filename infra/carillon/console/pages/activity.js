// @ts-check
// What has run, as it happens: a line for each end of an attempt, above it the sums of the last hour.
import { api } from "../lib/api.js";
import { attempt } from "../lib/feedback.js";
import { JobFilter, SpanFilter, tagOf } from "../lib/filters.js";
import { classes, html, useState } from "../lib/html.js";
import { useKeys } from "../lib/keys.js";
import { Choice, Empty, Filter, Head, Loaded, More } from "../lib/parts.js";
import { href, runHref, setQuery } from "../lib/router.js";
import { lookOf, Mark, Status } from "../lib/status.js";
import { useLoad } from "../lib/store.js";
import { Table } from "../lib/table.js";
import { duration, minute, Time } from "../lib/time.js";

/** @typedef {import("../types.d.ts").Ended} Ended */
/** @typedef {{ items: Ended[], cursor: string | null, asOf: string, isCounted: boolean, most: number }} Feed */

const PAGE = 100;
/** Lines that come by themselves are shown up to this number, and as many behind those that somebody wanted to see. */
const MOST_SHOWN = 1000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const FAILURES = "dead,timed_out,missed";
const STATUSES = [[FAILURES, "failures"], "succeeded", "retrying", "dead", "timed_out", "missed", "skipped", "cancelled"];
const KINDS = ["scheduled", "manual", "backfill", "after", "callback"];

/** @param {Ended} run */
const attemptOf = ({ run_id, attempt: count }) => `${run_id} ${count}`;
/** @param {Ended} run */
const runOf = ({ run_id }) => run_id;

/** The newest first: of each run as it is now, where they are of one job; else of each attempt, and of two the final one.
 * @param {Ended[]} newer @param {Ended[]} older @param {(run: Ended) => string} idOf */
function joined(newer, older, idOf) {
  /** @type {Map<string, Ended>} */
  const found = new Map();
  for (const run of [...newer, ...older]) {
    const known = found.get(idOf(run));
    if (!known || (idOf === attemptOf && known.status === "retrying")) found.set(idOf(run), run);
  }
  return [...found.values()].sort((one, other) => other.at.localeCompare(one.at));
}

/** @param {{ query: Record<string, string> }} props */
export default function Activity({ query }) {
  const { status, kind, job, tag, from, to } = query;
  const [isLive, setLive] = useState(true);
  const filters = { status, kind, job, tag: tagOf(tag), from, to };
  const idOf = job ? runOf : attemptOf;

  /** @param {object} more @returns {Promise<Feed>} */
  const page = async (more) => {
    const { items, next_cursor, as_of, successes } = await api.get("/runs", { ...filters, limit: PAGE, ...more });
    return { items, cursor: next_cursor, asOf: as_of, isCounted: successes === "counted", most: MOST_SHOWN };
  };
  const feed = useLoad(
    async (_, /** @type {Feed | null} */ before) => {
      if (!before) return page({});
      if (!isLive || to) return before;
      if (before.items.length > before.most) return page({});
      const since = await page({ after: before.asOf });
      // More than a page since the last answer: what lies between is not known, so begin anew.
      return since.cursor ? page({}) : { ...since, items: joined(since.items, before.items, idOf), cursor: before.cursor, most: before.most };
    },
    [JSON.stringify(filters)],
    { every: 2 },
  );
  const more = () =>
    attempt("Older runs", async () => {
      const before = /** @type {Feed} */ (feed.data);
      const older = await page({ cursor: before.cursor });
      const items = joined(before.items, older.items, idOf);
      feed.set({ ...before, items, cursor: older.cursor, most: items.length + MOST_SHOWN });
    });
  const flip = () => setLive((now) => !now);
  useKeys({ p: ["pause or go on", flip] });
  /** @param {string} name */
  const filter = (name) => ({ value: query[name] ?? "", set: (/** @type {string} */ value) => setQuery({ [name]: value }) });
  const isFiltered = Object.values(filters).some(Boolean);
  const running = isLive && !to;

  return html`
    <${Head} title="Activity" sub=${html`<span class=${classes("live", running && "on")}>${running ? "live" : "paused"}</span>`}>
      <button type="button" title="p" disabled=${Boolean(to)} onClick=${flip}>${isLive ? "Pause" : "Go on"}</button>
    <//>
    <${Hour} />
    <div class="filters" role="search">
      <${Choice} label="Status" of=${STATUSES} ...${filter("status")} />
      <${Choice} label="Kind" of=${KINDS} ...${filter("kind")} />
      <${JobFilter} ...${filter("job")} />
      <${Filter} label="Tag" hint="team=billing" ...${filter("tag")} />
      <${SpanFilter} from=${from} to=${to} set=${setQuery} />
    </div>
    <${Loaded} of=${feed}>
      ${(/** @type {Feed} */ { items, cursor, isCounted }) =>
        items.length || cursor
          ? html`<div class="card"><${Table} label="Activity" rows=${items} id=${idOf} columns=${COLUMNS} /></div>
              <${More} cursor=${cursor} more=${more} />
              ${isCounted && html`<p class="hint">A success that was alone in its batch is counted above, and stands in its job's history only.</p>`}`
          : html`<${Empty} title=${isFiltered ? "Nothing like that has run" : "Nothing has run yet"}>
              ${isFiltered
                ? html`<a href=${href("/activity")}>Show all</a>, or change the filters.`
                : html`<a href=${href("/jobs")}>Run a job now</a>: it is here in a moment.`}
            <//>`}
    <//>
  `;
}

/** @type {import("../lib/table.js").Column<Ended>[]} */
const COLUMNS = [
  { title: "At", kind: "nowrap quiet", cell: (run) => html`<${Time} at=${run.at} as=${Date.now() - Date.parse(run.at) < DAY ? "clock" : "short"} />` },
  { title: "Status", kind: "nowrap", cell: (run) => html`<${Status} of=${run.status} />` },
  {
    title: "Job", kind: "main",
    cell: (run) => html`<a href=${runHref(run.job_id, run.run_id)}>${run.job_name}</a>${run.kind !== "scheduled" && html` <span class="chip">${run.kind}</span>`}`,
  },
  { title: "Lag", kind: "number", cell: (run) => duration(run.lag_seconds) },
  { title: "Took", kind: "number", cell: (run) => duration(run.duration_seconds) },
  {
    title: "Why", kind: "wide",
    cell: (run) => html`${[run.error_kind, run.reason].filter(Boolean).join(", ")}${run.attempt > 1 && html` <span class="quiet">attempt ${run.attempt}</span>`}`,
  },
];

/** Statuses from the ground up, as bars stack them. */
const STACK = ["succeeded", "skipped", "cancelled", "pending", "retrying", "unknown", "missed", "timed_out", "dead"];
const HEIGHT = 44;

/** @typedef {import("../types.d.ts").Bucket} Bucket */
/** @param {Bucket} bucket @returns {Record<string, number>} */
const countsOf = (bucket) => bucket.counts;
/** @param {Bucket} bucket */
const totalOf = (bucket) => STACK.reduce((sum, status) => sum + (countsOf(bucket)[status] ?? 0), 0);

/** A summary reads all jobs: once a minute is enough, and less while nobody touches the page. */
const IDLE_AFTER = 60_000;
const IDLE_SUMS = 5 * 60_000;
let touchedAt = Date.now();
for (const kind of ["pointermove", "keydown", "focus"]) {
  addEventListener(kind, () => (touchedAt = Date.now()), { passive: true });
}

/** The last hour: counts, lag, and a bar for each minute. What has left no trace is shown as that. */
function Hour() {
  const load = useLoad(
    async (_, /** @type {{ asked: number, from: string, minutes: Bucket[] } | null} */ before) => {
      const from = new Date(Math.floor((Date.now() - HOUR) / 60_000) * 60_000).toISOString();
      const isIdle = Date.now() - touchedAt > IDLE_AFTER;
      if (before && isIdle && Date.now() - before.asked < IDLE_SUMS) return before;
      const { buckets } = await api.get("/runs/summary", { from, by: "minute" });
      return { asked: Date.now(), from, minutes: buckets ?? [] };
    },
    [],
    { every: 60 },
  );
  if (!load.data) return html`<div class="card hour" aria-hidden="true"></div>`;
  const { from, minutes } = load.data;
  const { lag, at } = minutes.findLast((bucket) => bucket.lag) ?? {};
  const counts = STACK.map((status) => ({ status, count: minutes.reduce((sum, bucket) => sum + (countsOf(bucket)[status] ?? 0), 0) })).filter(({ count }) => count);
  return html`<section class="card hour" aria-label="The last hour">
    <div class="counts">
      ${counts.length ? counts.map(({ status, count }) => html`<a key=${status} class=${`status ${lookOf(status).tone}`} href=${href("/activity", ["pending", "unknown"].includes(status) ? {} : { status })}>
        <${Mark} of=${status} /><strong>${count.toLocaleString("en")}</strong> ${lookOf(status).words}</a>`) : html`<span class="quiet">nothing was due</span>`}
    </div>
    <${Minutes} from=${from} buckets=${minutes} />
    <p class="quiet line"><span>${lag && at ? `lag from ${minute(at)} on: p50 ${duration(lag.p50)} · p95 ${duration(lag.p95)} · p99 ${duration(lag.p99)} · longest ${duration(lag.max)}` : "no lag measured"}</span><span>${minute(from)} until now</span></p>
  </section>`;
}

/** @param {{ from: string, buckets: Bucket[] }} props */
function Minutes({ from, buckets }) {
  const most = Math.max(1, ...buckets.map(totalOf));
  const began = new Date(from).getTime();
  return html`<svg class="minutes" viewBox=${`0 0 610 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label="Runs by minute, the newest at the right">
    ${buckets.map((bucket) => {
      let y = HEIGHT;
      const x = ((new Date(bucket.at).getTime() - began) / 60_000) * 10;
      const told = STACK.filter((status) => countsOf(bucket)[status]).map((status) => `${countsOf(bucket)[status]} ${lookOf(status).words}`);
      return html`<g key=${bucket.at}><title>${`${minute(bucket.at)}: ${told.join(", ")}`}</title>
        ${STACK.map((status) => {
          const size = ((countsOf(bucket)[status] ?? 0) / most) * (HEIGHT - 2);
          y -= size;
          return size > 0 && html`<rect key=${status} class=${`${lookOf(status).tone} ${status}`} x=${x + 1} y=${y} width="8" height=${Math.max(size - 0.5, 1)} />`;
        })}</g>`;
    })}
  </svg>`;
}
