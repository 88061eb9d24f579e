// @ts-check
// One calendar: a year to click on, an .ics file to take in, the jobs that follow it.
import { api } from "../lib/api.js";
import { attempt, confirm } from "../lib/feedback.js";
import { Field } from "../lib/fields.js";
import { classes, html, useState } from "../lib/html.js";
import { Head, Loaded, Writing } from "../lib/parts.js";
import { go, href, jobHref, setQuery } from "../lib/router.js";
import { may } from "../lib/session.js";
import { useLoad } from "../lib/store.js";

/** @typedef {import("../types.d.ts").Calendar} Calendar */
/** @typedef {{ job_id: string, name: string }} Follower */

const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY = 86_400_000;
const MOST_PAGES = 10;
const MOST_JOBS = 100;

/** "2026-12-25". @param {number} at */
const textOf = (at) => new Date(at).toISOString().slice(0, 10);
/** @param {string} text */
const timeOf = (text) => Date.parse(`${text}T00:00:00Z`);
/** 0 for Monday. @param {number} at */
const weekdayOf = (at) => (new Date(at).getUTCDay() + 6) % 7;

/** Every closed day of dates and ranges. @param {Pick<Calendar, "dates" | "ranges">} calendar */
function daysOf({ dates, ranges }) {
  const days = new Set(dates);
  for (const { from, to } of ranges) for (let at = timeOf(from); at <= timeOf(to); at += DAY) days.add(textOf(at));
  return days;
}

/** Days as a calendar takes them: three or more in a row are a range. @param {Set<string>} days */
function bodyOf(days) {
  /** @type {string[]} */
  const dates = [];
  /** @type {{ from: string, to: string }[]} */
  const ranges = [];
  /** @type {string[]} */
  let run = [];
  const end = () => {
    const [from, to] = [run[0], run.at(-1)];
    if (run.length > 2 && from && to) ranges.push({ from, to });
    else dates.push(...run);
    run = [];
  };
  for (const day of [...days].sort()) {
    const before = run.at(-1);
    if (before && timeOf(day) - timeOf(before) !== DAY) end();
    run.push(day);
  }
  end();
  return { dates, ranges };
}

/** @param {string} name */
async function stored(name) {
  try {
    const { body, etag } = await api.tagged("/calendars/{name}", { name });
    return { calendar: body, etag };
  } catch (error) {
    if (/** @type {any} */ (error).status !== 404) throw error;
    return { calendar: null, etag: null };
  }
}

/** The jobs that follow, of the first thousand. @param {string} name */
async function followers(name) {
  /** @type {Follower[]} */
  const found = [];
  /** @type {string | null} */
  let cursor = null;
  for (let at = 0; at < MOST_PAGES; at += 1) {
    /** @type {any} */
    const page = await api.get("/jobs", /** @type {any} */ ({ view: "summary", limit: MOST_JOBS, cursor }));
    found.push(...page.items.filter((/** @type {any} */ job) => (job.calendar?.name ?? job.calendar) === name));
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  return { found, isWhole: !cursor };
}

/** @param {{ params: Record<string, string>, query: Record<string, string> }} props */
export default function CalendarPage({ params, query }) {
  const name = params.name ?? "";
  const load = useLoad(() => stored(name), [name]);
  return html`<${Loaded} of=${load}>
    ${(/** @type {Awaited<ReturnType<typeof stored>>} */ found) => html`<${Editor} key=${found.etag} name=${name} ...${found} year=${Number(query.year) || new Date().getUTCFullYear()} again=${load.again} />`}
  <//>`;
}

/** @param {{ name: string, calendar: Calendar | null, etag: string | null, year: number, again: () => Promise<void> }} props */
function Editor({ name, calendar, etag, year, again }) {
  const [draft, setDraft] = useState({ description: calendar?.description ?? "", weekdays: new Set(calendar?.weekdays ?? []), days: daysOf(calendar ?? { dates: [], ranges: [] }) });
  const [isChanged, setChanged] = useState(!calendar);
  const jobs = useLoad(() => followers(name), [name]);
  /** @param {Partial<typeof draft>} changes */
  const change = (changes) => {
    setDraft({ ...draft, ...changes });
    setChanged(true);
  };
  /** @param {Set<string>} set @param {string} value */
  const flipped = (set, value) => {
    const next = new Set(set);
    if (!next.delete(value)) next.add(value);
    return next;
  };
  /** @param {object} [more] */
  const save = (more) =>
    attempt("Saved: jobs follow it from the next minutes on", async () => {
      const body = { description: draft.description, weekdays: [...draft.weekdays], ...bodyOf(draft.days), ...more };
      /** @type {Record<string, string>} */
      const headers = etag ? { "If-Match": etag } : { "If-None-Match": "*" };
      await api.put("/calendars/{name}", { name }, body, { headers });
      await again();
    });
  /** @param {any} event */
  const take = async ({ target }) => {
    const [file] = target.files;
    if (file) await save({ icalendar: await file.text() });
    target.value = "";
  };
  const remove = async () => {
    if (!(await confirm({ title: `Delete ${name}?`, yes: "Delete", isDangerous: true, body: html`<p>It is refused while a job follows it.</p>` }))) return;
    if ((await attempt("Deleted", () => api.delete("/calendars/{name}", { name }))) !== undefined) go("/calendars");
  };
  return html`
    <${Head} title=${name} back=${{ href: href("/calendars"), words: "Calendars" }} sub=${calendar ? `${draft.days.size} closed days${draft.weekdays.size ? `, and every ${[...draft.weekdays].join(", ")}` : ""}` : "not saved yet"}>
      <${Writing}>
        ${calendar && html`<button type="button" onClick=${remove}>Delete</button>`}
        <label class="button">Take in an .ics file<input class="hidden" type="file" accept=".ics,text/calendar" onChange=${take} /></label>
        <button type="button" class="primary" disabled=${!isChanged} onClick=${() => save()}>Save</button>
      <//>
    <//>
    <div class="columns">
      <section class="card" aria-label=${`The year ${year}`}>
        <header><button type="button" class="small" onClick=${() => setQuery({ year: year - 1 })}>‹ ${year - 1}</button><h2>${year}</h2>
          <button type="button" class="small" onClick=${() => setQuery({ year: year + 1 })}>${year + 1} ›</button></header>
        <div class="body year">${Array.from({ length: 12 }, (_, month) => html`<${Month} key=${month} year=${year} month=${month} days=${draft.days} weekdays=${draft.weekdays}
          flip=${(/** @type {string} */ day) => change({ days: flipped(draft.days, day) })} />`)}</div>
      </section>
      <div class="stack">
        <section class="card"><div class="body stack">
          <${Field} label="Description" name="description" value=${draft.description} set=${(/** @type {string} */ description) => change({ description })} />
          <fieldset class="weekdays"><legend>Closed every week</legend>
            ${WEEKDAYS.map((day) => html`<button type="button" key=${day} class="small" disabled=${!may()} aria-pressed=${draft.weekdays.has(day)} onClick=${() => change({ weekdays: flipped(draft.weekdays, day) })}>${day}</button>`)}
          </fieldset>
        </div></section>
        <section class="card"><h2>Jobs that follow</h2><div class="body">
          <${Loaded} of=${jobs}>${(/** @type {{ found: Follower[], isWhole: boolean }} */ { found, isWhole }) => html`
            ${found.length > 0 && html`<ul class="plain-list">${found.map((job) => html`<li key=${job.job_id}><a href=${jobHref(job.job_id)}>${job.name}</a></li>`)}</ul>`}
            ${!isWhole ? html`<p class="quiet">Only the first ${(MOST_PAGES * MOST_JOBS).toLocaleString("en")} jobs were looked at: others may follow it, too.</p>` : !found.length && html`<p class="quiet">None yet: name it under “calendar” of a job.</p>`}`}<//>
        </div></section>
      </div>
    </div>
  `;
}

/** @param {{ year: number, month: number, days: Set<string>, weekdays: Set<string>, flip: (day: string) => void }} props */
function Month({ year, month, days, weekdays, flip }) {
  const first = Date.UTC(year, month, 1);
  const count = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const today = textOf(Date.now());
  const title = new Intl.DateTimeFormat("en-GB", { month: "long", timeZone: "UTC" }).format(first);
  return html`<div role="group" aria-label=${`${title} ${year}`}><h3>${title}</h3><div class="month">
    ${WEEKDAYS.map((day) => html`<span key=${day} aria-hidden="true">${day.slice(0, 2)}</span>`)}
    ${Array.from({ length: count }, (_, at) => {
      const day = textOf(first + at * DAY);
      const weekday = weekdayOf(first + at * DAY);
      const isOff = weekdays.has(WEEKDAYS[weekday] ?? "");
      const isClosed = days.has(day);
      return html`<button type="button" key=${day} class=${classes(isOff && "off", day === today && "today")} style=${at ? undefined : { gridColumn: weekday + 1 }}
        disabled=${!may()} aria-pressed=${isClosed} aria-label=${`${at + 1} ${title}${isClosed || isOff ? ", closed" : ""}`} onClick=${() => flip(day)}>${at + 1}</button>`;
    })}</div></div>`;
}
