// @ts-check
// The jobs: found by name or filter, with what they last did, one by one or many at once.
import * as acting from "../lib/acting.js";
import { api } from "../lib/api.js";
import { download, manifestOf } from "../lib/definition.js";
import { attempt, tell } from "../lib/feedback.js";
import { tagOf } from "../lib/filters.js";
import { html, useEffect, useState } from "../lib/html.js";
import { Choice, Empty, Filter, Head, Loaded, More, Search, Writing } from "../lib/parts.js";
import { href, jobHref, setQuery } from "../lib/router.js";
import { may } from "../lib/session.js";
import { Status, Strip } from "../lib/status.js";
import { usePages, useSettled } from "../lib/store.js";
import { Table } from "../lib/table.js";
import { Time } from "../lib/time.js";

/** @typedef {import("../types.d.ts").JobRow} Row */

const PAGE = 50;
const SHOWN = { view: "summary", include: "recent_runs", limit: PAGE };

/** The filters as the API takes them; a tag is written as `team=billing`. @param {Record<string, string>} query */
const filtersOf = ({ q, state, parent, managed_by, tag }) => ({ q, state, parent, managed_by, tag: tagOf(tag) });

/** @param {import("../lib/api.js").Values} filters @param {object} [more] */
const list = (filters, more) =>
  /** @type {Promise<import("../lib/store.js").Page<Row>>} */ (api.get("/jobs", { ...SHOWN, ...filters, ...more }));

/** All that match, page by page. @param {import("../lib/api.js").Values} filters @param {object} [more] */
async function every(filters, more) {
  /** @type {Row[]} */
  const found = [];
  /** @type {string | null} */
  let cursor = null;
  do {
    const page = await list(filters, { include: undefined, limit: 100, ...more, cursor });
    found.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  return found;
}

/** @param {{ query: Record<string, string> }} props */
export default function Jobs({ query }) {
  const [typed, setTyped] = useState(query.q ?? "");
  const q = useSettled(typed);
  useEffect(() => setQuery({ q }), [q]);
  const filters = filtersOf({ ...query, q });
  const text = JSON.stringify(filters);
  const { load, rows, cursor, more, renew } = usePages((at) => list(filters, at), ({ job_id }) => job_id, [text], { every: 5 });
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  useEffect(() => setSelected(new Set()), [text]);

  const chosen = rows.filter(({ job_id }) => selected.has(job_id));
  const isFiltered = Object.values(filters).some(Boolean);

  /** @param {Promise<unknown>} act */
  const then = async (act) => {
    if (!(await act)) return;
    setSelected(new Set());
    renew();
  };
  const pauseMatching = async () => {
    const found = await attempt("", () => every(filters));
    if (!found) return;
    const active = found.filter(({ state }) => state === "active");
    if (!active.length) return tell("No active job matches");
    const { tag, parent, ...others } = filters;
    const isBulk = !Object.values(others).some(Boolean);
    const chosen = tag || parent ? { tag, parent } : { all: true };
    const all = isBulk ? (/** @type {object} */ body) => api.all("/jobs/pause", chosen, body) : undefined;
    return then(acting.pause(active, all, `Pause ${active.length === 1 ? "the one job" : `all ${active.length} jobs`} ${isFiltered ? "that match" : "that are active"}`));
  };
  const exportAll = () =>
    attempt("Exported", async () => download("jobs.yaml", manifestOf(/** @type {any} */ (await every(filters, { view: undefined })))));
  const keys = {
    p: ["pause or resume", (/** @type {Row} */ row) => then(row.state === "paused" ? acting.resume([row]) : acting.pause([row]))],
    r: ["run now", (/** @type {Row} */ row) => then(acting.runNow(row))],
  };
  /** @param {string} name */
  const filter = (name) => ({ value: query[name] ?? "", set: (/** @type {string} */ value) => setQuery({ [name]: value }) });

  return html`
    <${Head} title="Jobs">
      <button type="button" onClick=${exportAll}>Export YAML</button>
      <${Writing}>
        <button type="button" onClick=${pauseMatching}>Pause all matching…</button>
        <a class="button primary" href=${href("/new")} title="n">New job</a>
      <//>
    <//>
    <div class="filters" role="search">
      <${Search} label="Search by name" value=${typed} set=${setTyped} />
      <${Choice} label="State" of=${["active", "paused", "completed"]} ...${filter("state")} />
      <${Filter} label="Tag" hint="team=billing" ...${filter("tag")} />
      <${Filter} label="Parent" ...${filter("parent")} />
      <${Filter} label="Managed by" hint="manifest/…" ...${filter("managed_by")} />
    </div>
    ${chosen.length > 0 &&
    html`<div class="selection" role="region" aria-label="Selection">
      <strong>${chosen.length} selected</strong>
      <button type="button" class="small" onClick=${() => then(acting.pause(chosen))}>Pause</button>
      <button type="button" class="small" onClick=${() => then(acting.resume(chosen))}>Resume</button>
      <button type="button" class="small" onClick=${() => then(acting.tag(chosen))}>Tag</button>
      <button type="button" class="small" onClick=${() => then(acting.remove(chosen))}>Delete</button>
    </div>`}
    <${Loaded} of=${load}>
      ${() =>
        rows.length || cursor
          ? html`<div class="card">
              <${Table} label="Jobs" rows=${rows} id=${(/** @type {Row} */ row) => row.job_id} columns=${COLUMNS}
                ...${may() ? { selected, select: setSelected, keys } : {}} />
            </div>
            <${More} cursor=${cursor} more=${() => attempt("More jobs", more)} />`
          : html`<${Empty} title=${isFiltered ? "No job matches" : "No jobs yet"}>
              ${isFiltered ? "Change the search or the filters." : may() && html`<a href=${href("/new")}>Make the first one</a>, or apply a manifest.`}
            <//>`}
    <//>
  `;
}

/** @param {{ job: Row }} props */
function State({ job }) {
  return html`<${Status} of=${job.state} />
    ${(job.resume_at || job.note) &&
    html`<span class="below">${job.resume_at && html`until <${Time} at=${job.resume_at} as="short" /> `}${job.note && `“${job.note}”`}</span>`}`;
}

/** @type {import("../lib/table.js").Column<Row>[]} */
const COLUMNS = [
  {
    title: "Name", kind: "main",
    cell: (job) => html`<a href=${jobHref(job.job_id)}>${job.name}</a>
      ${Object.entries(job.tags ?? {}).map(([key, value]) => html` <span class="chip wide">${key}=${value}</span>`)}`,
  },
  { title: "When", cell: (job) => html`${job.sentence}${job.timezone && job.timezone !== "UTC" && !job.sentence?.includes(job.timezone) && html` <span class="quiet">${job.timezone}</span>`}` },
  { title: "State", cell: (job) => html`<${State} job=${job} />` },
  { title: "Next", kind: "nowrap", cell: (job) => html`<${Time} at=${job.next_fire_at} />` },
  { title: "Last 10", kind: "nowrap", cell: (job) => html`<${Strip} runs=${job.recent} />` },
  { title: "Defined in", kind: "wide", cell: (job) => html`<span class="quiet">${job.managed_by ?? "–"}</span>` },
];
