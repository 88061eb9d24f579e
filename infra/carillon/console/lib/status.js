// @ts-check
// Statuses: a shape, a word and a colour; the strip of a job's last runs.
import { html } from "./html.js";
import { absolute, duration } from "./time.js";

/** @type {Record<string, { tone: string, words: string, shape: string }>} */
const LOOKS = {
  succeeded: { tone: "ok", words: "succeeded", shape: "check" },
  dead: { tone: "bad", words: "dead", shape: "cross" },
  failed: { tone: "bad", words: "failed", shape: "cross" },
  timed_out: { tone: "bad", words: "timed out", shape: "clock" },
  missed: { tone: "bad", words: "missed", shape: "diamond" },
  retrying: { tone: "warn", words: "retrying", shape: "again" },
  skipped: { tone: "mute", words: "skipped", shape: "dash" },
  cancelled: { tone: "mute", words: "cancelled", shape: "square" },
  running: { tone: "info", words: "running", shape: "arc" },
  scheduled: { tone: "info", words: "waiting", shape: "ring" },
  pending: { tone: "mute", words: "pending", shape: "ring" },
  unknown: { tone: "warn", words: "unknown", shape: "ask" },
  active: { tone: "ok", words: "active", shape: "dot" },
  paused: { tone: "warn", words: "paused", shape: "bars" },
  completed: { tone: "mute", words: "completed", shape: "check" },
  deleted: { tone: "mute", words: "deleted", shape: "cross" },
  renamed: { tone: "mute", words: "renamed", shape: "dash" },
};

/** Paths in a square of 12. @type {Record<string, string>} */
const SHAPES = {
  check: "M2.5 6.3 5 8.8 9.7 3.6",
  cross: "M3 3l6 6M9 3l-6 6",
  clock: "M6 1.5a4.5 4.5 0 1 0 .01 0M6 3.5V6l2 1.3",
  diamond: "M6 1.5 10.5 6 6 10.5 1.5 6z",
  again: "M9.8 4.5A4.2 4.2 0 1 0 10.2 7M10 1.8v2.9H7.1",
  dash: "M2.5 6h7",
  square: "M3 3h6v6H3z",
  arc: "M6 1.7A4.3 4.3 0 0 1 10.3 6",
  ring: "M6 2.2a3.8 3.8 0 1 0 .01 0",
  ask: "M4 4.2A2 2 0 1 1 6 6.4v.8M6 9.6v.2",
  dot: "M6 3.8a2.2 2.2 0 1 0 .01 0",
  bars: "M4.2 2.8v6.4M7.8 2.8v6.4",
};

/** @param {string} status */
export const lookOf = (status) => LOOKS[status] ?? { tone: "mute", words: status, shape: "ring" };

/** Only the shape, hidden from screen readers. @param {{ of: string }} props */
export function Mark({ of }) {
  const { tone, shape } = lookOf(of);
  return html`<svg class=${`mark ${tone} ${shape}`} viewBox="0 0 12 12" aria-hidden="true"><path d=${SHAPES[shape]} /></svg>`;
}

/** A status with its word. @param {{ of: string, words?: string }} props */
export const Status = ({ of, words }) =>
  html`<span class=${`status ${lookOf(of).tone}`}><${Mark} of=${of} />${words ?? lookOf(of).words}</span>`;

/** @typedef {{ run_id: string, status: string, fire_at: string, duration_seconds?: number | null, error_kind?: string | null }} Seen */

/** Words for many runs: "9 succeeded, 1 dead". @param {Seen[]} runs */
export function countsOf(runs) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { status } of runs) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} ${lookOf(status).words}`).join(", ");
}

const BAR = 7;
const COUNT = 10;
/** The shape of a bar by tone: none is told by its colour alone. @type {Record<string, [y: number, height: number, kind: string]>} */
const BARS = { ok: [2, 14, "full"], bad: [2, 14, "cut"], warn: [9, 7, "full"], mute: [9, 7, "hollow"], info: [5, 11, "hollow"] };

/**
 * The last ten runs, the newest at the right; undefined while they are not loaded.
 * @param {{ runs: Seen[] | null | undefined }} props newest first
 */
export function Strip({ runs }) {
  if (!runs) return html`<span class="strip loading" aria-label="not loaded yet"></span>`;
  if (!runs.length) return html`<span class="quiet">none yet</span>`;
  const shown = runs.slice(0, COUNT).reverse();
  return html`<svg class="strip" width=${BAR * COUNT} height="18" role="img" aria-label=${`last ${shown.length}: ${countsOf(shown)}`}>
    ${shown.map((run, at) => {
      const { tone, words } = lookOf(run.status);
      const [y, height, kind] = BARS[tone] ?? [9, 7, "hollow"];
      const x = (COUNT - shown.length + at) * BAR + 1;
      const told = [absolute(run.fire_at), words, run.error_kind, run.duration_seconds != null && duration(run.duration_seconds)];
      return html`<g class=${`bar ${tone} ${kind}`} key=${run.run_id}>
        <title>${told.filter(Boolean).join(" · ")}</title>
        <rect x=${x + (kind === "hollow" ? 0.5 : 0)} y=${y} width=${kind === "hollow" ? 4 : 5} height=${height} rx="1.5" />
        ${kind === "cut" && html`<path d=${`M${x - 1} 12.5l7-5`} />`}
      </g>`;
    })}
  </svg>`;
}
