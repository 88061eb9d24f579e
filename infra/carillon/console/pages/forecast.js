// @ts-check
// The starts of a day, minute by minute: what has been is grey, what comes is green; who is in a minute, and spreading them.
import { patchAll } from "../lib/acting.js";
import { api } from "../lib/api.js";
import { ask, attempt } from "../lib/feedback.js";
import { html, useState } from "../lib/html.js";
import { useKeys } from "../lib/keys.js";
import { Callout, Empty, Head, Loaded, Writing } from "../lib/parts.js";
import { Bar } from "../lib/progress.js";
import { href, jobHref, setQuery } from "../lib/router.js";
import { may } from "../lib/session.js";
import { useLoad } from "../lib/store.js";
import { absolute, clockFace, minute as clockOf, zoneName } from "../lib/time.js";

/** @typedef {import("../types.d.ts").Forecast} Forecast */
/** @typedef {import("../types.d.ts").InMinute} Someone */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = 5;
const CELL = [10, 18];
const WINDOWS = ["5m", "10m", "15m", "30m", "1h", "10%", "50%"];

/** The midnight at or before an instant, on the clock that the pages show. @param {number} at */
function midnight(at) {
  const day = new Date(at);
  return clockFace.get() === "utc" ? day.setUTCHours(0, 0, 0, 0) : day.setHours(0, 0, 0, 0);
}

/** "2026-11-23", the day of an instant on that clock, and its midnight. @param {number} at */
function dayOf(at) {
  const isUtc = clockFace.get() === "utc";
  return new Date(at - (isUtc ? 0 : new Date(at).getTimezoneOffset() * MINUTE)).toISOString().slice(0, 10);
}
/** @param {string} day */
const beginOf = (day) => midnight(Date.parse(`${day}T12:00:00${clockFace.get() === "utc" ? "Z" : ""}`));

/** @param {number} at */
const dayName = (at) => absolute(at).split(", ")[0];

/** @param {number} value */
const number = (value) => value.toLocaleString("en");

/**
 * The least value of each step of the scale: fifths of the different values. So one crowded minute has a step of its
 * own, and many even ones do not make a single dark block.
 * @param {number[]} values
 */
function stepsOf(values) {
  const different = [...new Set(values)].sort((one, other) => one - other);
  if (different.length <= STEPS) return different;
  return Array.from({ length: STEPS }, (_, at) => /** @type {number} */ (different[Math.floor((at * different.length) / STEPS)]));
}

/** The shade, 1 to 5, of a step: the highest is the strongest however few there are. @param {number} at @param {number} of */
const shade = (at, of) => (of > 1 ? 1 + Math.round((at * (STEPS - 1)) / (of - 1)) : 2);

/** The jobs that start in a minute. @param {number} at */
const everyone = async (at) => (await api.get("/forecast/jobs", { minute: new Date(at).toISOString() })).items;

/** @param {{ query: Record<string, string> }} props */
export default function ForecastPage({ query }) {
  clockFace.use();
  const first = query.day ? beginOf(query.day) : midnight(Date.now());
  const last = midnight(first + DAY + 2 * HOUR);
  const load = useLoad(
    () => api.get("/forecast", { from: new Date(first).toISOString(), to: new Date(last).toISOString() }),
    [first, last],
    { every: 30 },
  );
  const chosen = query.minute ? Date.parse(query.minute) : null;
  /** @param {number | null} at */
  const choose = (at) => setQuery({ minute: at === null ? "" : new Date(at).toISOString().slice(0, 16) + "Z" });
  /** @param {number} days */
  const turn = (days) => setQuery({ day: days ? dayOf(first + DAY / 2 + days * DAY) : "", minute: "" });
  useKeys({ "[": ["day before", () => turn(-1)], "]": ["day after", () => turn(1)] });
  const isToday = first === midnight(Date.now());

  return html`
    <${Head} title="Forecast" sub=${html`<span>${dayName(first)}, ${zoneName()}</span>${load.data && html`<span>${number(load.data.total)} starts of ${number(load.data.jobs_counted)} jobs</span>`}`}>
      <button type="button" title="[" onClick=${() => turn(-1)}>‹ Day before</button>
      <button type="button" disabled=${isToday} onClick=${() => turn(0)}>Today</button>
      <button type="button" title="]" onClick=${() => turn(1)}>Day after ›</button>
    <//>
    <${Loaded} of=${load}>
      ${(/** @type {Forecast} */ forecast) => html`
        ${!forecast.complete && html`<${Callout} tone="warn" title="Not all jobs are counted">There are more than a forecast reads: the numbers are at least these.<//>`}
        ${forecast.total
          ? html`<div class="columns">
              <${Map} forecast=${forecast} first=${first} last=${last} chosen=${chosen} choose=${choose} />
              <div class="stack">
                ${chosen !== null && html`<${Who} key=${chosen} at=${chosen} close=${() => choose(null)} again=${load.again} />`}
                <${Peaks} peaks=${forecast.peaks} chosen=${chosen} choose=${choose} />
              </div>
            </div>`
          : html`<${Empty} title="Nothing starts on this day">
              ${forecast.jobs_after_finish ? "Jobs with a fixed delay are not foreseen: each start follows from the end before it. " : ""}${may() && html`<a href=${href("/new")}>Make a job</a>, or `}${may() ? "look" : "Look"} at another day.
            <//>`}
      `}
    <//>
  `;
}

/** @param {{ forecast: Forecast, first: number, last: number, chosen: number | null, choose: (at: number) => void }} props */
function Map({ forecast, first, last, chosen, choose }) {
  const [pointed, setPointed] = useState(/** @type {number | null} */ (null));
  const now = Date.now();
  const hours = Math.round((last - first) / HOUR);
  /** @type {Record<number, number>} */
  const fires = Object.fromEntries(forecast.minutes.map((each) => [(Date.parse(each.minute) - first) / MINUTE, each.fires]));
  const steps = stepsOf(Object.values(fires));
  /** @param {number} at */
  const stepOf = (at) => steps.findLastIndex((least) => (fires[at] ?? 0) >= least);
  const [width, height] = /** @type {[number, number]} */ (CELL);
  /** One path for each step, of the past and of what comes. @type {Record<string, string>} */
  const paths = {};
  for (const at of Object.keys(fires).map(Number)) {
    const kind = `heat-${shade(stepOf(at), steps.length)}${first + (at + 1) * MINUTE <= now ? " past" : ""}`;
    paths[kind] = `${paths[kind] ?? ""}M${(at % 60) * width} ${Math.floor(at / 60) * height}h${width - 1}v${height - 1}h${1 - width}z`;
  }
  const selected = chosen === null ? null : Math.round((chosen - first) / MINUTE);
  const present = pointed ?? selected ?? Math.max(0, Math.min(hours * 60 - 1, Math.floor((now - first) / MINUTE)));
  /** @param {number} at */
  const words = (at) => `${clockOf(first + at * MINUTE)}: ${fires[at] ? `${number(fires[at])} start${fires[at] === 1 ? "" : "s"}, step ${stepOf(at) + 1} of ${steps.length}` : "no start"}`;
  /** @param {any} event */
  const cellAt = ({ currentTarget, clientX, clientY }) => {
    const box = currentTarget.getBoundingClientRect();
    const [x, y] = [((clientX - box.left) / box.width) * 60, ((clientY - box.top) / box.height) * hours];
    return Math.min(hours - 1, Math.max(0, Math.floor(y))) * 60 + Math.min(59, Math.max(0, Math.floor(x)));
  };
  /** @type {Record<string, number>} */
  const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -60, ArrowDown: 60 };
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    const next = event.key === "Enter" ? present : present + (moves[event.key] ?? NaN);
    if (!(next >= 0 && next < hours * 60)) return;
    event.preventDefault();
    if (event.key === "Enter") choose(first + next * MINUTE);
    setPointed(next);
  };
  const peaks = forecast.peaks.slice(0, 3).map(({ minute }) => (Date.parse(minute) - first) / MINUTE);
  /** @param {number} at @param {string} kind */
  const frame = (at, kind) => html`<rect class=${kind} x=${(at % 60) * width - 0.5} y=${Math.floor(at / 60) * height - 0.5} width=${width} height=${height} />`;
  return html`<section class="card map" aria-label="Heat map">
    <div class="axis" aria-hidden="true">${[0, 15, 30, 45].map((at) => html`<span key=${at}>:${String(at).padStart(2, "0")}</span>`)}</div>
    <div class="grid">
      <div class="hours" aria-hidden="true">${Array.from({ length: hours }, (_, at) => html`<span key=${at}>${clockOf(first + at * HOUR)}</span>`)}</div>
      <div class="heat" role="slider" tabindex="0" aria-label="Minute" aria-valuemin="0" aria-valuemax=${hours * 60 - 1} aria-valuenow=${present} aria-valuetext=${words(present)}
        onKeyDown=${key} onPointerMove=${(/** @type {any} */ event) => setPointed(cellAt(event))} onPointerLeave=${() => setPointed(null)}
        onClick=${(/** @type {any} */ event) => choose(first + cellAt(event) * MINUTE)}>
        <svg viewBox=${`0 0 ${60 * width} ${hours * height}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="ground" d=${`M0 0h${60 * width}v${hours * height}h${-60 * width}z`} />
          ${Object.entries(paths).map(([kind, d]) => html`<path key=${kind} class=${kind} d=${d} />`)}
          ${peaks.map((at) => frame(at, "peak"))}
          ${now >= first && now < last && html`<path class="now" d=${`M${(((now - first) / MINUTE) % 60) * width} ${Math.floor((now - first) / HOUR) * height}v${height}`} />`}
          ${pointed !== null && frame(pointed, "pointed")}${selected !== null && frame(selected, "selected")}
        </svg>
      </div>
    </div>
    <footer class="line">
      <strong>${words(present)}</strong>
      <span class="legend">${steps.map((least, at) => {
        const most = Math.max(...Object.values(fires).filter((each) => !(each >= (steps[at + 1] ?? Infinity))));
        return html`<span key=${least}><i class=${`heat-${shade(at, steps.length)}`}></i>${least === most ? number(least) : `${number(least)}–${number(most)}`}</span>`;
      })}<span><i class="heat-3 past"></i>past</span><span><i class="peak"></i>peak</span></span>
    </footer>
  </section>`;
}

/** @param {{ peaks: Forecast["peaks"], chosen: number | null, choose: (at: number) => void }} props */
const Peaks = ({ peaks, chosen, choose }) =>
  html`<section class="card" aria-label="Peaks"><h2>Peaks</h2>
    <ul class="peaks">${peaks.map(({ minute, fires, jobs }) => html`<li key=${minute}>
      <button type="button" class="plain" aria-pressed=${chosen === Date.parse(minute)} onClick=${() => choose(Date.parse(minute))}>
        <strong>${clockOf(minute)}</strong><span>${number(fires)} start${fires === 1 ? "" : "s"}</span></button>
      <p class="quiet">${jobs.join(", ")}${fires > jobs.length ? " …" : ""}</p></li>`)}</ul>
  </section>`;

/** Jobs that fire more often are left where they are, unless they are chosen: a window would move each of their starts. */
const SELDOM = 24;
const MOST_NAMED = 50;

/** Who is in a minute, and a way to spread them. @param {{ at: number, close: () => void, again: () => Promise<void> }} props */
function Who({ at, close, again }) {
  const load = useLoad(() => everyone(at), [at]);
  const [share, setShare] = useState(/** @type {number | null} */ (null));
  const [flipped, setFlipped] = useState(/** @type {Set<string>} */ (new Set()));
  /** @param {Someone} job */
  const isIn = ({ job_id, window, most_per_day }) => (!window && most_per_day <= SELDOM) !== flipped.has(job_id);
  /** @param {string} id */
  const flip = (id) => setFlipped(new Set(flipped.has(id) ? [...flipped].filter((each) => each !== id) : [...flipped, id]));
  const chosen = (load.data ?? []).filter(isIn);
  const named = chosen.length === 1 ? "this job" : `${number(chosen.length)} jobs`;
  const spread = async () => {
    const given = await ask({
      title: `Spread ${named}`, yes: "Spread",
      body: html`<p>Each starts a little later than its schedule says, always by the same amount: somewhere in a window.</p>
        <label class="field"><span>Window</span><select name="window">${WINDOWS.map((each) => html`<option value=${each} selected=${each === "15m"}>${each.endsWith("%") ? `${each} of the interval` : each}</option>`)}</select></label>`,
    });
    if (!given) return;
    setShare(0);
    await attempt(
      (done) => done && `Spread ${number(done)} job${done === 1 ? "" : "s"} over ${given.window}`,
      () => patchAll(chosen.map(({ job_id }) => ({ job_id, patch: { window: given.window } })), (done) => setShare(done / chosen.length)),
    );
    setShare(null);
    setFlipped(new Set());
    await Promise.all([again(), load.again()]);
  };
  return html`<section class="card who-in" aria-label="Who is in this minute">
    <header><h2>Who is in ${clockOf(at)}</h2><button type="button" class="plain" aria-label="Close" onClick=${close}>×</button></header>
    <div class="body">
      ${share !== null && html`<${Bar} label="Spreading" share=${share} />`}
      <${Loaded} of=${load}>
        ${(/** @type {Someone[]} */ jobs) => html`
          ${jobs.length ? html`<${Writing}><button type="button" class="primary" disabled=${share !== null || !chosen.length} onClick=${spread}>Spread ${named}…</button><//>` : html`<p class="quiet">Nobody starts in this minute.</p>`}
          <ul>${jobs.slice(0, MOST_NAMED).map((job) => html`<li key=${job.job_id}>
            ${may() && html`<input type="checkbox" aria-label=${`Spread ${job.name}`} checked=${isIn(job)} onChange=${() => flip(job.job_id)} />`}
            <a href=${jobHref(job.job_id)}>${job.name}</a>
            ${job.window ? html`<span class="chip">window ${job.window}</span>` : job.most_per_day > SELDOM && html`<span class="quiet">${number(job.most_per_day)} a day</span>`}</li>`)}</ul>
          ${jobs.length > MOST_NAMED && html`<p class="quiet">and ${number(jobs.length - MOST_NAMED)} more</p>`}`}
      <//>
    </div>
  </section>`;
}
