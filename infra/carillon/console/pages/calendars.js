// @ts-check
// Calendars of closed days.
import { api } from "../lib/api.js";
import { ask, attempt } from "../lib/feedback.js";
import { html } from "../lib/html.js";
import { Empty, Head, Loaded, More, Writing } from "../lib/parts.js";
import { go, href } from "../lib/router.js";
import { usePages } from "../lib/store.js";
import { Table } from "../lib/table.js";
import { Time } from "../lib/time.js";

/** @typedef {import("../types.d.ts").Calendar} Calendar */

/** @param {string} name */
const pathOf = (name) => `/calendars/${encodeURIComponent(name)}`;

async function create() {
  const given = await ask({
    title: "New calendar", yes: "Go on",
    body: html`<label class="field"><span>Name</span><input name="name" required pattern="[a-z0-9][a-z0-9._\\-]{0,63}" placeholder="latvia" autocomplete="off" /></label>
      <p class="hint">Small letters, digits, dot, dash. Nothing is saved before you say so.</p>`,
  });
  if (given?.name) go(pathOf(given.name));
}

export default function Calendars() {
  const { load, rows, cursor, more } = usePages((at) => api.get("/calendars", { limit: 100, ...at }), ({ name }) => name, []);
  return html`
    <${Head} title="Calendars" sub="Closed days, by each job's own clock"><${Writing}><button type="button" class="primary" onClick=${create}>New calendar</button><//><//>
    <${Loaded} of=${load}>
      ${() =>
        rows.length || cursor
          ? html`<div class="card"><${Table} label="Calendars" rows=${rows} id=${(/** @type {Calendar} */ { name }) => name} columns=${COLUMNS} /></div>
              <${More} cursor=${cursor} more=${() => attempt("More calendars", more)} />`
          : html`<${Empty} title="No calendar yet">
              Make one of holidays, by hand or of an .ics file; a job that follows it skips or moves what falls on a closed day.
            <//>`}
    <//>
  `;
}

/** @type {import("../lib/table.js").Column<Calendar>[]} */
const COLUMNS = [
  { title: "Name", kind: "main", cell: ({ name, description }) => html`<a href=${href(pathOf(name))}>${name}</a>${description && html` <span class="below">${description}</span>`}` },
  { title: "Weekdays", cell: ({ weekdays }) => weekdays.join(", ") || html`<span class="quiet">none</span>` },
  { title: "Days and ranges", kind: "number", cell: ({ dates, ranges }) => dates.length + ranges.length },
  { title: "Changed", kind: "nowrap", cell: ({ updated_at }) => html`<${Time} at=${updated_at} />` },
];
