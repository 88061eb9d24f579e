// @ts-check
// Operations on the way: how far they are, and their end.
import { api } from "./api.js";
import { attempt } from "./feedback.js";
import { html } from "./html.js";
import { Writing } from "./parts.js";
import { Status } from "./status.js";
import { useLoad } from "./store.js";

/** @typedef {import("../types.d.ts").Operation} Operation */
/** @typedef {{ count: number, isMore: boolean }} Counted */
/** What an operation was to do in all, as it was counted at a time. @typedef {Counted & { at: number }} Total */

const VERBS = { redrive: "redriven", discard: "discarded", backfill: "sent", hand_over: "handed over" };
const OF_LETTERS = ["redrive", "discard"];
const MOST_PAGES = 10;
/** A count takes as many requests: it stands, but where there are more than it counts. */
const RECOUNT_MS = 60_000;

/** The filters of dead letters, as requests take them. @param {any} of */
export const lettersOf = ({ job_id, reason, error, from, to }) => ({ job_id, reason, error, from, to });

/** The number of dead letters that match; it stops counting at a thousand. @param {any} of @returns {Promise<Counted>} */
export async function countLetters(of) {
  let count = 0;
  /** @type {string | null} */
  let cursor = null;
  for (let at = 0; at < MOST_PAGES; at += 1) {
    /** @type {any} */
    const page = await api.get("/dead-letters", { ...lettersOf(of), limit: 100, cursor });
    count += page.items.length;
    cursor = page.next_cursor;
    if (!cursor) return { count, isMore: false };
  }
  return { count, isMore: true };
}

/** The share that is done, 0 to 1; null where nothing tells it. @param {Operation} operation @param {Counted | null} total */
function shareOf({ state, kind, from, to, reached, done, passed_over: passedOver }, total) {
  if (state === "succeeded") return 1;
  if (kind === "backfill" && from && to) {
    const [first, last, now] = [from, to, reached ?? from].map((at) => Date.parse(at));
    return /** @type {number} */ (last) > /** @type {number} */ (first) ? (/** @type {number} */ (now) - /** @type {number} */ (first)) / (/** @type {number} */ (last) - /** @type {number} */ (first)) : 0;
  }
  return total && !total.isMore ? (done + passedOver) / Math.max(1, done + passedOver, total.count) : null;
}

/** @param {Operation} operation @param {Total | null | undefined} known @returns {Promise<Total | null>} */
async function totalOf(operation, known) {
  if (operation.state !== "running" || !OF_LETTERS.includes(operation.kind)) return null;
  if (known && (!known.isMore || Date.now() - known.at < RECOUNT_MS)) return known;
  const left = await countLetters(operation);
  return { ...left, count: operation.done + operation.passed_over + left.count, at: Date.now() };
}

/** @param {{ label: string, share: number | null }} props */
export const Bar = ({ label, share }) =>
  html`<progress aria-label=${label} max="1" value=${share ?? undefined}>${share === null ? "" : `${Math.round(share * 100)} %`}</progress>`;

/** How far an operation is, asked again until its end. @param {{ operation: Operation, ended?: () => void }} props */
export function Progress({ operation: first, ended }) {
  const { operation_id } = first;
  const load = useLoad(
    async (_, /** @type {{ operation: Operation, total: Total | null } | null} */ before) => {
      if (before && before.operation.state !== "running") return before;
      const operation = before || first.state === "running" ? await api.get("/operations/{operation_id}", { operation_id }) : first;
      if (operation.state !== "running" && first.state === "running") ended?.();
      return { operation, total: await totalOf(operation, before?.total) };
    },
    [operation_id],
    { every: 2 },
  );
  const { operation, total } = load.data ?? { operation: first, total: null };
  const { kind, state, done, passed_over: passedOver, per_minute, note, left: stayed } = operation;
  const of = total && `${Math.max(done + passedOver, total.count).toLocaleString("en")}${total.isMore ? "+" : ""}`;
  const cancel = () => attempt("Cancelled", async () => load.set({ operation: await api.post("/operations/{operation_id}/cancel", { operation_id }), total: null }));
  return html`<div class="progress">
    <${Bar} label=${`${kind}, the share that is done`} share=${shareOf(operation, total)} />
    <p><${Status} of=${state} />
      <span>${done.toLocaleString("en")}${of ? ` of ${of}` : ""} ${VERBS[kind]}${passedOver > 0 ? `, ${passedOver} passed over` : ""}</span>
      ${state === "running" && kind !== "hand_over" && html`<span class="quiet">at most ${per_minute} a minute</span>`}
      ${state === "running" && html`<${Writing}><button type="button" class="small" onClick=${cancel}>Cancel</button><//>`}
      ${note && html`<span class="quiet">${note}</span>`}</p>
    ${stayed.length > 0 && html`<ul class="quiet">${stayed.map((why) => html`<li>${why}</li>`)}</ul>`}
  </div>`;
}
