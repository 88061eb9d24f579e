// @ts-check
// What an owner may have and take, and how much of it is in use; operators see and set anybody's.
import { api, Problem } from "../lib/api.js";
import { tell } from "../lib/feedback.js";
import { Field } from "../lib/fields.js";
import { html, useState } from "../lib/html.js";
import { Filter, Head, Loaded } from "../lib/parts.js";
import { setQuery } from "../lib/router.js";
import { isReadOnly } from "../lib/session.js";
import { useLoad } from "../lib/store.js";
import { Table } from "../lib/table.js";

/** @typedef {import("../types.d.ts").Quotas} Quotas */
/** @typedef {import("../types.d.ts").Quota} Quota */

/** @type {Record<Quota["name"], [title: string, of: string]>} */
const WORDS = {
  jobs: ["Jobs", "that are not deleted, paused ones, too"],
  scheduled_per_minute: ["Scheduled starts a minute", "the mean of all jobs"],
  starts_per_minute: ["Starts a minute", "in the last minute"],
  concurrent_runs: ["Concurrent runs", "that last longer than 2 s"],
  requests_per_second: ["Requests a second", "in the last second"],
};

/** The parts of an owner's name; that of a team may go without its kind. @param {string} owner */
function partsOf(owner) {
  const [, kind = "team", name = ""] = /^(?:(team|user)\/)?(.*)$/.exec(owner) ?? [];
  return { kind, name };
}

/** @param {number | null | undefined} value */
const figure = (value) => (value ?? "not counted").toLocaleString("en", { maximumFractionDigits: 2 });

/** @param {Quota} quota */
const useOf = ({ name, use, limit }) =>
  html`${figure(use)}${limit > 0 && html` <progress max=${limit} value=${Math.min(use ?? 0, limit)} aria-label=${`${WORDS[name][0]}: ${figure(use)} of ${figure(limit)}`} />`}`;

/** @type {import("../lib/table.js").Column<Quota>[]} */
const COLUMNS = [
  { title: "Quota", kind: "main", cell: ({ name }) => html`${WORDS[name][0]}<span class="below">${WORDS[name][1]}</span>` },
  { title: "In use", kind: "nowrap", cell: useOf },
  { title: "Limit", kind: "number", cell: ({ limit }) => (limit ? figure(limit) : "none") },
  { title: "Set for", kind: "nowrap wide", cell: ({ own }) => (own ? "this owner" : "all owners") },
];

/** @param {{ query: Record<string, string>, caller: any }} props */
export default function QuotasPage({ query, caller }) {
  const owner = query.owner ?? "";
  const load = useLoad(() => (owner ? api.get("/owners/{kind}/{name}/quota", partsOf(owner)) : api.get("/quota")), [owner]);
  return html`
    <${Head} title="Quotas" sub=${load.data?.owner ?? ""} />
    ${caller?.is_operator && html`<div class="filters"><${Filter} label="Owner" hint="yours; or team/billing" value=${owner} set=${(/** @type {string} */ wanted) => setQuery({ owner: wanted })} /></div>`}
    <${Loaded} of=${load}>
      ${(/** @type {Quotas} */ found) => html`<div class="stack">
        <section class="card"><${Table} label="Quotas" rows=${found.quotas} id=${(/** @type {Quota} */ { name }) => name} columns=${COLUMNS} /></section>
        ${caller?.is_operator && !isReadOnly && html`<${Limits} key=${found.owner} found=${found} set=${load.set} />`}
      </div>`}
    <//>
  `;
}

/** @param {{ found: Quotas, set: (found: Quotas) => void }} props */
function Limits({ found, set }) {
  const [limits, setLimits] = useState(() => Object.fromEntries(found.quotas.map(({ name, own, limit }) => [name, own ? `${limit}` : ""])));
  const [errors, setErrors] = useState(/** @type {import("../lib/api.js").FieldProblem[]} */ ([]));
  const save = async () => {
    const body = Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== "").map(([name, limit]) => [name, Number(limit)]));
    try {
      set(await api.put("/owners/{kind}/{name}/quota", partsOf(found.owner), body));
      setErrors([]);
      tell("Saved: it counts within half a minute");
    } catch (error) {
      // A token that could not be renewed names no fields.
      const { title, detail, errors: told = [] } = /** @type {Problem} */ (error);
      setErrors(told);
      if (!told.length) tell(title, detail, true);
    }
  };
  return html`<section class="card">
    <h2>Limits of ${found.owner} alone</h2>
    <div class="body fields three">
      ${found.quotas.map(({ name }) => html`<${Field} key=${name} label=${WORDS[name][0]} name=${name} kind="number" value=${limits[name]} errors=${errors}
        set=${(/** @type {string} */ limit) => setLimits({ ...limits, [name]: limit })} placeholder="as all owners" hint="0: none" />`)}
    </div>
    <div class="body"><button type="button" class="primary" onClick=${save}>Save</button></div>
  </section>`;
}
