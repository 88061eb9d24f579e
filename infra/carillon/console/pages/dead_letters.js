// @ts-check
// Runs that have failed for good: run again or put aside, one by one, some, or all that match.
import { toEach } from "../lib/acting.js";
import { api, onceKey } from "../lib/api.js";
import { ask, attempt, confirm } from "../lib/feedback.js";
import { JobFilter, SpanFilter, useNames } from "../lib/filters.js";
import { html, useEffect, useState } from "../lib/html.js";
import { Choice, Empty, Filter, Head, Loaded, More, Writing } from "../lib/parts.js";
import { countLetters, lettersOf, Progress } from "../lib/progress.js";
import { href, runHref, setQuery } from "../lib/router.js";
import { may } from "../lib/session.js";
import { Mark } from "../lib/status.js";
import { usePages } from "../lib/store.js";
import { Table } from "../lib/table.js";
import { Time } from "../lib/time.js";

/** @typedef {import("../types.d.ts").Run} Letter */

const REASONS = ["exhausted", "refused", "executor_died", "never_started", "unreadable"];
const PACE = 100;

/** @param {Letter} letter */
const idOf = ({ run_id }) => run_id;

/** @param {{ query: Record<string, string> }} props */
export default function DeadLetters({ query }) {
  const filters = lettersOf(query);
  const text = JSON.stringify(filters);
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const [operation, setOperation] = useState(/** @type {any} */ (null));
  const { load, rows, cursor, more, renew: anew } = usePages((at) => api.get("/dead-letters", { ...filters, limit: 50, ...at }), idOf, [text], { every: 5 });
  useEffect(() => setSelected(new Set()), [text]);
  const nameOf = useNames(rows.map(({ job_id }) => job_id));
  const chosen = rows.filter(({ run_id }) => selected.has(run_id));
  const isFiltered = Object.values(filters).some(Boolean);

  const renew = () => {
    setSelected(new Set());
    anew();
  };
  /** @param {Letter[]} letters */
  const redrive = async (letters) => {
    const act = () => toEach(letters, ({ run_id }) => api.post("/dead-letters/{run_id}/redrive", { run_id }));
    await attempt((count) => count && (letters.length === 1 ? "Redriven: it starts in a moment" : `Redriven ${count} run${count === 1 ? "" : "s"}`), act);
    renew();
  };
  /** @param {Letter[]} letters */
  const discard = async (letters) => {
    const title = letters.length === 1 ? "Discard this dead letter?" : `Discard ${letters.length} dead letters?`;
    const body = html`<p>They leave this list for good; their jobs' histories keep them.</p>`;
    if (!(await confirm({ title, body, yes: "Discard", isDangerous: true }))) return;
    await attempt((count) => count && `Discarded ${count}`, () => toEach(letters, ({ run_id }) => api.delete("/dead-letters/{run_id}", { run_id })));
    renew();
  };
  /** @param {"redrive" | "discard"} kind */
  const all = async (kind) => {
    const found = await attempt("Counted", () => countLetters(filters));
    if (!found) return;
    const words = `${found.count.toLocaleString("en")}${found.isMore ? "+" : ""} ${isFiltered ? "that match" : "dead letters"}`;
    const verb = kind === "redrive" ? "Redrive" : "Discard";
    const given = await ask({
      title: `${verb} all ${words}?`, yes: verb, isDangerous: kind === "discard",
      body: html`<p>${kind === "redrive" ? "Each runs again, with its job's payload and target as they are now." : "They leave this list for good; their jobs' histories keep them."}</p>
        <label class="field"><span>At most, a minute</span><input name="pace" type="number" min="1" max="1000" value=${PACE} required /></label>`,
    });
    if (!given) return;
    const body = { ...(isFiltered ? JSON.parse(JSON.stringify(filters)) : { all: true }), per_minute: Number(given.pace) };
    setOperation(await attempt(`${verb} begins`, () => api.post(`/dead-letters/${kind}`, {}, body, onceKey())));
  };
  /** @param {string} name */
  const filter = (name) => ({ value: query[name] ?? "", set: (/** @type {string} */ value) => setQuery({ [name]: value }) });
  const keys = {
    r: ["redrive", (/** @type {Letter} */ letter) => redrive(chosen.length ? chosen : [letter])],
    d: ["discard", (/** @type {Letter} */ letter) => discard(chosen.length ? chosen : [letter])],
  };

  return html`
    <${Head} title="Dead letters" sub="Runs that have failed for good, until they are redriven or discarded">
      ${rows.length > 0 &&
      html`<${Writing}>
        <${Writing} role="admin"><button type="button" onClick=${() => all("discard")}>Discard all${isFiltered ? " matching" : ""}…</button><//>
        <button type="button" class="primary" onClick=${() => all("redrive")}>Redrive all${isFiltered ? " matching" : ""}…</button>
      <//>`}
    <//>
    ${operation && html`<section class="card notice" aria-label="Progress"><div class="body">
      <${Progress} key=${operation.operation_id} operation=${operation} ended=${renew} />
      <a href=${href("/operations")}>All operations</a></div></section>`}
    <div class="filters" role="search">
      <${JobFilter} ...${filter("job_id")} />
      <${Choice} label="Reason" of=${REASONS} ...${filter("reason")} />
      <${Filter} label="Error" hint="http_503" ...${filter("error")} />
      <${SpanFilter} from=${query.from} to=${query.to} set=${setQuery} />
    </div>
    ${chosen.length > 0 &&
    html`<div class="selection" role="region" aria-label="Selection">
      <strong>${chosen.length} selected</strong>
      <button type="button" class="small" onClick=${() => redrive(chosen)}>Redrive</button>
      <button type="button" class="small" onClick=${() => discard(chosen)}>Discard</button>
    </div>`}
    <${Loaded} of=${load}>
      ${() =>
        rows.length || cursor
          ? html`<div class="card">
              <${Table} label="Dead letters" rows=${rows} id=${idOf} columns=${columnsOf(nameOf)}
                ...${may() ? { selected, select: setSelected, keys } : {}} />
            </div>
            <${More} cursor=${cursor} more=${() => attempt("Older ones", more)} />`
          : html`<${Empty} title=${isFiltered ? "No dead letter matches" : "No dead letters"}>
              ${isFiltered ? html`<a href=${href("/dead-letters")}>Show all</a>, or change the filters.` : "Every run that failed has been dealt with. What fails for good comes here."}
            <//>`}
    <//>
  `;
}

/** @param {(id: string) => string} nameOf @returns {import("../lib/table.js").Column<Letter>[]} */
const columnsOf = (nameOf) => [
  {
    title: "Job", kind: "main",
    cell: (letter) => html`<a href=${runHref(letter.job_id, letter.run_id)}>${nameOf(letter.job_id)}</a>${letter.kind !== "scheduled" && html` <span class="chip">${letter.kind}</span>`}`,
  },
  { title: "Fired", kind: "nowrap", cell: (letter) => html`<${Time} at=${letter.fire_at} />` },
  { title: "Error", kind: "nowrap", cell: (letter) => html`<span class="status bad"><${Mark} of=${letter.status} />${letter.error?.kind ?? letter.reason ?? letter.status}</span>` },
  { title: "Message", kind: "wide message", cell: (letter) => letter.error?.message },
  { title: "Reason", kind: "nowrap quiet", cell: (letter) => `${letter.reason ?? ""}${letter.attempt > 1 ? `, ${letter.attempt} attempts` : ""}` },
];
