// @ts-check
// For operators: how far the dispatch of each segment is, and what waits in the lanes.
import { api } from "../lib/api.js";
import { html } from "../lib/html.js";
import { Callout, Empty, Figures, Head, Loaded } from "../lib/parts.js";
import { Status } from "../lib/status.js";
import { useLoad } from "../lib/store.js";
import { Table } from "../lib/table.js";
import { Time } from "../lib/time.js";

/** @typedef {import("../types.d.ts").Segment} Segment */
/** @typedef {{ lane: string, waiting: number, in_flight: number, dead_letters: number }} Lane */

const LATE_MINUTES = 2;

/** @param {Segment} segment */
const stateOf = ({ unreadable, watermark_at, lag_minutes }) =>
  unreadable ? html`<${Status} of="failed" words="unreadable" />` : !watermark_at ? html`<span class="quiet">not used yet</span>`
  : lag_minutes > LATE_MINUTES ? html`<${Status} of="retrying" words="behind" />` : html`<${Status} of="active" words="on time" />`;

export default function Segments() {
  const load = useLoad(() => /** @type {Promise<any>} */ (api.get("/status")), [], { every: 5 });
  return html`
    <${Head} title="Segments" sub="The dispatch of the whole deployment, for operators" />
    <${Loaded} of=${load}>
      ${(/** @type {{ segments: Segment[] | null, lanes?: Lane[] | null }} */ { segments, lanes }) =>
        segments
          ? html`<div class="stack">
              ${segments.filter(({ unreadable }) => unreadable).map(({ segment, unreadable }) => html`<${Callout} tone="bad" title=${`Segment ${segment}`}>${unreadable}<//>`)}
              <section class="card"><div class="body"><${Figures} of=${[
                ["Segments", segments.length],
                ["Longest lag", `${Math.max(0, ...segments.map(({ lag_minutes }) => lag_minutes))} min`],
                ["Backlog", `${segments.reduce((sum, { backlog_minutes }) => sum + backlog_minutes, 0)} min`],
                ...(lanes ?? []).map(({ lane, waiting }) => [`Waiting, ${lane}`, waiting.toLocaleString("en")]),
              ]} /></div></section>
              <section class="card"><h2>Segments</h2><${Table} label="Segments" rows=${segments} id=${(/** @type {Segment} */ { segment }) => `${segment}`} columns=${SEGMENTS} /></section>
              ${lanes && html`<section class="card"><h2>Lanes</h2><${Table} label="Lanes" rows=${lanes} id=${(/** @type {Lane} */ { lane }) => lane} columns=${LANES} /></section>`}
            </div>`
          : html`<${Empty} title="For operators only">Somebody of the operators' group sees the segments here.<//>`}
    <//>
  `;
}

/** @type {import("../lib/table.js").Column<Segment>[]} */
const SEGMENTS = [
  { title: "Segment", kind: "main", cell: ({ segment }) => segment },
  { title: "State", kind: "nowrap", cell: stateOf },
  { title: "Watermark", kind: "nowrap", cell: ({ watermark_at }) => html`<${Time} at=${watermark_at} />` },
  { title: "Lag", kind: "number", cell: ({ lag_minutes }) => `${lag_minutes} min` },
  { title: "Backlog", kind: "number", cell: ({ backlog_minutes }) => `${backlog_minutes} min` },
  { title: "Filed until", kind: "nowrap wide", cell: ({ horizon_at }) => html`<${Time} at=${horizon_at} />` },
  { title: "Lease until", kind: "nowrap wide", cell: ({ lease_until }) => html`<${Time} at=${lease_until} as="clock" />` },
];

/** @type {import("../lib/table.js").Column<Lane>[]} */
const LANES = [
  { title: "Lane", kind: "main", cell: ({ lane }) => lane },
  { title: "Waiting", kind: "number", cell: ({ waiting }) => waiting.toLocaleString("en") },
  { title: "In flight", kind: "number", cell: ({ in_flight }) => in_flight.toLocaleString("en") },
  { title: "Dead messages", kind: "number", cell: ({ dead_letters }) => dead_letters ? html`<${Status} of="dead" words=${dead_letters.toLocaleString("en")} />` : 0 },
];
