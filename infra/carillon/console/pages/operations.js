// @ts-check
// Work on many runs: how far it is, at what pace, and a way to stop it.
import { api } from "../lib/api.js";
import { attempt } from "../lib/feedback.js";
import { useNames } from "../lib/filters.js";
import { html } from "../lib/html.js";
import { Empty, Head, Loaded, More } from "../lib/parts.js";
import { Progress } from "../lib/progress.js";
import { href, jobHref } from "../lib/router.js";
import { usePages } from "../lib/store.js";
import { Time } from "../lib/time.js";

/** @typedef {import("../types.d.ts").Operation} Operation */

const TITLES = { backfill: "Backfill", redrive: "Redrive of dead letters", discard: "Discard of dead letters", hand_over: "Hand-over" };

export default function Operations() {
  const { load, rows, cursor, more } = usePages((at) => api.get("/operations", { limit: 50, ...at }), ({ operation_id }) => operation_id, [], { every: 5 });
  const nameOf = useNames(rows.map(({ job_id }) => job_id));
  return html`
    <${Head} title="Operations" sub="Backfills, redrives, discards and hand-overs, step by step" />
    <${Loaded} of=${load}>
      ${() =>
        rows.length || cursor
          ? html`<div class="stack">${rows.map((operation) => html`<${Work} key=${operation.operation_id} operation=${operation} nameOf=${nameOf} />`)}</div>
              <${More} cursor=${cursor} more=${() => attempt("Earlier ones", more)} />`
          : html`<${Empty} title="No operation yet">
              One begins where you <a href=${href("/dead-letters")}>redrive dead letters</a>, or backfill what a job has missed.
            <//>`}
    <//>
  `;
}

/** @param {{ operation: Operation, nameOf: (id: string) => string }} props */
function Work({ operation, nameOf }) {
  const { kind, job_id, reason, error, from, to, only, new_owner, parent, tags, created_at } = operation;
  return html`<section class="card"><div class="body">
    <header class="line">
      <h2>${TITLES[kind]}${job_id && html` · <a href=${jobHref(job_id)}>${nameOf(job_id)}</a>`}</h2>
      <span class="quiet">begun <${Time} at=${created_at} /></span>
    </header>
    <p class="quiet">${from && html`from <${Time} at=${from} as="short" /> `}${to && html`to <${Time} at=${to} as="short" /> `}
      ${[only === "missed" && "only what was missed", reason, error, new_owner && `to ${new_owner}`, parent, ...Object.entries(tags ?? {}).map((tag) => tag.join("="))].filter(Boolean).map((words) => html`<span class="chip">${words}</span> `)}</p>
    <${Progress} operation=${operation} />
  </div></section>`;
}
