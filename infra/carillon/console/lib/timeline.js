// @ts-check
// The runs of a span of time, and those to come: one bar each, as high as it took long.
import { html } from "./html.js";
import { countsOf, lookOf } from "./status.js";
import { absolute, clockFace, day, duration, minute } from "./time.js";

/** @typedef {import("../types.d.ts").Run} Run */

const WIDTH = 1000;
const HEIGHT = 78;
const BASE = 70;
const LEAST = 8;
/** The share of the width that is still to come. */
const AHEAD = 0.22;
const HOUR = 3_600_000;
/** Hours between two labels of the axis, by the hours shown. @type {[most: number, step: number][]} */
const STEPS = [[48, 4], [200, 24], [Infinity, 120]];

/** @param {Run} run */
export const secondsOf = (run) =>
  run.started_at && run.finished_at ? (Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000 : null;

/**
 * @param {{ runs: Run[], next: { fire_at: string }[], hours: number, now: number }} props
 */
export function Timeline({ runs, next, hours, now }) {
  const begin = now - hours * HOUR;
  const end = now + (hours * HOUR * AHEAD) / (1 - AHEAD);
  /** @param {string | number} at */
  const x = (at) => ((new Date(at).getTime() - begin) / (end - begin)) * WIDTH;
  const shown = runs.filter((run) => Date.parse(run.fire_at) >= begin);
  const longest = Math.max(0.5, ...shown.map((run) => secondsOf(run) ?? 0));
  /** @param {Run} run */
  const height = (run) => LEAST + (BASE - LEAST - 6) * Math.sqrt((secondsOf(run) ?? 0) / longest);
  const width = Math.max(1.6, Math.min(6, (WIDTH * (1 - AHEAD)) / Math.max(1, shown.length) - 1));
  const ticks = ticksOf(begin, end, (STEPS.find(([most]) => hours <= most)?.[1] ?? 24) * HOUR);
  return html`<svg class="timeline" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
    aria-label=${shown.length ? `the last ${hours} hours: ${countsOf(shown)}` : `no run in the last ${hours} hours`}>
    <defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <path d="M0 0v4" class="hatch" /></pattern></defs>
    <rect class="ahead" x=${x(now)} y="0" width=${WIDTH - x(now)} height=${BASE} />
    <path class="axis" d=${`M0 ${BASE}.5h${WIDTH}`} />
    ${shown.map((run) => {
      const { tone, words } = lookOf(run.status);
      const high = height(run);
      const told = [absolute(run.fire_at), words, run.error?.kind, secondsOf(run) !== null && duration(secondsOf(run))];
      return html`<g class=${`bar ${tone}`} key=${run.run_id}>
        <title>${told.filter(Boolean).join(" · ")}</title>
        <rect x=${x(run.fire_at) - width / 2} y=${BASE - high} width=${width} height=${high} fill=${tone === "mute" ? "url(#hatch)" : undefined} class=${tone === "mute" ? "hatched" : ""} />
        ${tone === "bad" && html`<rect x=${x(run.fire_at) - width / 2} y=${BASE + 3} width=${width} height="4" />`}
      </g>`;
    })}
    ${next
      .filter(({ fire_at }) => Date.parse(fire_at) < end)
      .map(({ fire_at }) => html`<g class="bar mute" key=${fire_at}><title>${absolute(fire_at)} · to come</title>
        <rect class="coming" x=${x(fire_at) - 1.5} y=${BASE - 16} width="3" height="15" /></g>`)}
    <path class="now" d=${`M${x(now)} 0V${BASE + 4}`} />
  </svg>
  <div class="ticks" aria-hidden="true">${ticks.map((at) => html`<span key=${at} style=${{ left: `${x(at) / (WIDTH / 100)}%` }}>${hours > 48 ? day(at) : minute(at)}</span>`)}</div>`;
}

/** Round instants on the clock that is shown, but for the ends, where a label has no room.
 * @param {number} begin @param {number} end @param {number} step */
function ticksOf(begin, end, step) {
  const margin = (end - begin) / 30;
  const first = Math.ceil(onWall(begin + margin) / step) * step;
  const count = Math.max(0, Math.floor((onWall(end - margin) - first) / step) + 1);
  return Array.from({ length: count }, (_, at) => fromWall(first + at * step));
}

/** What the clock that is shown says at an instant, as if it were UTC. @param {number} at */
const onWall = (at) => (clockFace.get() === "utc" ? at : at - new Date(at).getTimezoneOffset() * 60_000);

/** The instant at which it says so, on either side of a change of the clocks. @param {number} wall */
function fromWall(wall) {
  if (clockFace.get() === "utc") return wall;
  const told = new Date(wall);
  return new Date(told.getUTCFullYear(), told.getUTCMonth(), told.getUTCDate(), told.getUTCHours()).getTime();
}
