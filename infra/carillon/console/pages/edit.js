// @ts-check
// A new job, or a change of one: the sentence, the next times and the price while it is written.
import { Problem, api, onceKey } from "../lib/api.js";
import { yaml } from "../lib/definition.js";
import { METHODS, TARGETS, bodyOf, changesOf, defaultAt, draftOf, jsonText, listText, scheduleOf, tagsText, valueAt, withValue } from "../lib/draft.js";
import { Dialog, tell } from "../lib/feedback.js";
import { Field, Group } from "../lib/fields.js";
import { html, useEffect, useMemo, useState } from "../lib/html.js";
import { Callout, Code, Head, Loaded, Trouble, Writing } from "../lib/parts.js";
import { go, href, jobHref, useUnsaved } from "../lib/router.js";
import { may } from "../lib/session.js";
import { useLoad, useSettled } from "../lib/store.js";
import { Time, absolute } from "../lib/time.js";

/** @typedef {import("../types.d.ts").Job} Job */
/** @typedef {import("../lib/draft.js").Draft} Draft */
/** @typedef {import("../lib/api.js").FieldProblem} FieldProblem */
/** @typedef {{ draft: Draft, put: (path: string, value: unknown) => void, errors: FieldProblem[] }} Form */

const ZONES = ["UTC", ...Intl.supportedValuesOf("timeZone")];
/** @type {Draft} */
const EMPTY = { name: "", target: { type: "webhook" }, schedule: "" };
const CONFLICT = new Problem(412, "Somebody has changed this job meanwhile",
  "What you have written is still here. Save again to put it over the newer definition, of which all that you did not touch stays.");
const EVENTS = ["run.started", "run.succeeded", "run.failed", "run.retrying", "run.dead", "run.skipped", "run.missed"];

/** @param {{ params: { job_id?: string } }} props */
export default function Edit({ params: { job_id } }) {
  const load = useLoad(async () => (job_id ? api.tagged("/jobs/{job_id}", { job_id }) : { body: null, etag: "" }), [job_id]);
  return html`<${Loaded} of=${load}>${(/** @type {{ body: Job | null, etag: string }} */ { body, etag }) =>
    html`<${Written} job=${body} etag=${etag} />`}<//>`;
}

/** @param {{ job: Job | null, etag: string }} props */
function Written({ job, etag: firstTag }) {
  const first = useMemo(() => (job ? draftOf(job) : EMPTY), []);
  const [draft, setDraft] = useState(first);
  const [etag, setEtag] = useState(firstTag);
  const [isSaved, setSaved] = useState(false);
  useUnsaved(may() && !isSaved && Object.keys(changesOf(first, draft)).length > 0);
  const [problem, setProblem] = useState(/** @type {Problem | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const [isYaml, setYaml] = useState(false);
  const key = useMemo(onceKey, []);
  const errors = problem?.errors ?? [];
  /** @param {string} path @param {unknown} value */
  const put = (path, value) => setDraft((before) => withValue(before, path, value === "" && path !== "name" ? undefined : value));
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    if (!may()) return;
    setBusy(true);
    try {
      const made = job
        ? await api.patch("/jobs/{job_id}", { job_id: job.job_id }, changesOf(first, draft), etag)
        : await api.post("/jobs", {}, bodyOf(draft), key);
      setSaved(true);
      tell(job ? `Changed ${made.name}` : `Created ${made.name}`);
      go(`/jobs/${encodeURIComponent(made.job_id)}`);
    } catch (error) {
      const { status } = /** @type {any} */ (error);
      // Whoever saves again knows of the newer definition, and means it.
      if (status === 412) setEtag("*");
      setProblem(status === 412 ? CONFLICT : error instanceof Problem ? error : new Problem(0, "Not sent", String(error)));
      setBusy(false);
    }
  };
  useEffect(() => {
    if (errors.length) /** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid]"))?.focus();
  }, [problem]);
  const form = { draft, put, errors };
  const back = job ? { href: jobHref(job.job_id), words: job.name } : { href: href("/jobs"), words: "Jobs" };
  return html`<form class="edit" onSubmit=${submit} novalidate>
    <${Head} title=${job ? `Edit ${job.name}` : "New job"} back=${back}>
      <button type="button" onClick=${() => setYaml(true)}>As YAML</button>
      <${Writing}><button class="primary" disabled=${isBusy}>${job ? "Save" : "Create"}</button><//>
    <//>
    ${job?.managed_by && html`<${Callout} tone="info">Defined in ${job.managed_by}: a change here is refused. Change it there, and apply it.<//>`}
    ${problem && !errors.length && html`<${Trouble} problem=${problem} />`}
    ${errors.length > 0 && html`<${Callout} tone="bad" title=${problem?.title}>${errors.length === 1 ? "One field has to change." : `${errors.length} fields have to change.`}<//>`}
    <div class="columns">
      <div class="card"><div class="body stack">
        <${Basics} ...${form} job=${job} />
        <${Policies} ...${form} />
      </div></div>
      <${Outlook} draft=${draft} put=${put} />
    </div>
    ${isYaml && html`<${Dialog} title="As YAML" wide=${true} close=${() => setYaml(false)}>
      <div class="body"><${Code} label="jobs.yaml" text=${yamlOf(draft)} /></div><//>`}
  </form>`;
}

/** @param {Draft} draft */
const yamlOf = ({ name, ...settings }) => yaml({ jobs: { [name || "name"]: settings } });

/**
 * A field of the draft at a path; `as` reads and shows what is no text.
 * @param {Form & { path: string, label: string, hint?: string, as?: any, kind?: string, of?: any, suggest?: string[], placeholder?: string, autofocus?: boolean }} props
 */
function At({ draft, put, errors, path, as, kind, of, placeholder, ...others }) {
  const value = valueAt(draft, path);
  const [text, setText] = useState(as ? as.show(value) : undefined);
  /** @param {any} given */
  const set = (given) => {
    if (as) setText(given);
    const read = as ? as.read(given) : kind === "number" && given !== "" ? Number(given) : given;
    put(path, read === false ? undefined : read);
  };
  return html`<${Field} ...${others} name=${path} kind=${kind} of=${of} errors=${errors} set=${set}
    value=${as ? text : value ?? (of ? defaultAt(path) ?? [of[0]].flat()[0] : "")} placeholder=${placeholder ?? defaultAt(path)} />`;
}

/** @param {Form & { job: Job | null }} props */
function Basics({ job, ...form }) {
  const { payload } = form.draft;
  const isAlmostJson = typeof payload === "string" && /^\s*[[{]/.test(payload);
  const type = form.draft.target?.type ?? "webhook";
  const fields = TARGETS[type] ?? [];
  return html`
    <div class="fields">
      <div class="full"><${At} ...${form} path="name" label="Name" placeholder="nightly report" autofocus=${!job} /></div>
      <${Field} label="Target" name="target.type" value=${type} errors=${[]} of=${Object.keys(TARGETS)}
        set=${(/** @type {string} */ kind) => form.put("target", { type: kind })} />
      ${fields.map(([name, label, hint]) => html`<${At} key=${`${type} ${name}`} ...${form} path=${`target.${name}`} label=${label} placeholder=${hint} />`)}
      ${type === "webhook" && html`<${At} ...${form} path="target.method" label="Method" of=${METHODS} />`}
    </div>
    <div class="fields">
      <${At} ...${form} path="schedule" label="Schedule" as=${jsonText} placeholder="0 9 * * mon-fri" hint="cron, every 25m, or at 2026-12-24T09:00:00" />
      <${At} ...${form} path="timezone" label="Time zone" suggest=${ZONES} />
    </div>
    <${At} ...${form} path="payload" label="Payload" kind="area" as=${jsonText} placeholder='{"day": "today"}' hint=${isAlmostJson ? "the target gets this as text, not as JSON" : "what the target gets: JSON, or text"} />`;
}

/** @param {Form} form */
function Policies(form) {
  /** @param {...string} names */
  const isRefused = (...names) => form.errors.some(({ field }) => names.includes(field.split(".")[0] ?? ""));
  const { retry = {}, overlap = "allow", concurrency, rate, catch_up = "latest", calendar, window, events } = form.draft;
  return html`<div>
    <${Group} title="Retry" now=${`${retry.max_attempts ?? defaultAt("retry.max_attempts")} attempts, ${retry.backoff?.type ?? defaultAt("retry.backoff.type")}`} isOpen=${isRefused("retry", "timeout_seconds")}>
      <${At} ...${form} path="retry.max_attempts" label="Attempts" kind="number" />
      <${At} ...${form} path="retry.backoff.type" label="Backoff" of=${["exponential", "fixed"]} />
      <${At} ...${form} path="retry.backoff.base_seconds" label="First wait, seconds" kind="number" />
      <${At} ...${form} path="retry.backoff.cap_seconds" label="Longest wait, seconds" kind="number" />
      <${At} ...${form} path="timeout_seconds" label="Time limit, seconds" kind="number" />
    <//>
    <${Group} title="Overlap and limits" now=${[overlap, concurrency && `${concurrency.limit} of ${concurrency.key}`, rate && `${rate.limit} per ${rate.per}`].filter(Boolean).join(", ")} isOpen=${isRefused("overlap", "concurrency", "rate", "priority", "tolerance")}>
      <${At} ...${form} path="overlap" label="While one is running" of=${[["allow", "start another"], ["skip", "skip"], ["queue_one", "queue one"]]} />
      <${At} ...${form} path="priority" label="Priority" of=${["high", "normal", "low"]} />
      <${At} ...${form} path="concurrency.key" label="Concurrency key" placeholder="crm" />
      <${At} ...${form} path="concurrency.limit" label="… at most at a time" kind="number" />
      <${At} ...${form} path="rate.limit" label="Starts, at most" kind="number" />
      <${At} ...${form} path="rate.per" label="… in" placeholder="1m" />
    <//>
    <${Group} title="Late and missed" now=${`catch up: ${catch_up}`} isOpen=${isRefused("catch_up", "grace", "expect_within", "pause_after_failures")}>
      <${At} ...${form} path="catch_up" label="After an outage" of=${[["latest", "run the latest"], ["all", "run all"], ["skip", "run none"]]} />
      <${At} ...${form} path="grace" label="Grace" placeholder="how late it may start: 10m" />
      <${At} ...${form} path="expect_within" label="Success expected within" placeholder="1h" />
      <${At} ...${form} path="pause_after_failures" label="Pause after failures" kind="number" />
    <//>
    <${Group} title="Calendar and clocks" now=${[calendar?.name ?? "no calendar", window && `window ${window}`].filter(Boolean).join(", ")} isOpen=${isRefused("calendar", "window", "dst", "start_at", "end_at", "max_runs")}>
      <${At} ...${form} path="calendar.name" label="Calendar" placeholder="none" />
      <${At} ...${form} path="calendar.rule" label="On closed days" of=${[["", "as the calendar says"], ["skip", "skip"], ["next_business_day", "the next business day"], ["previous_business_day", "the business day before"]]} />
      <${At} ...${form} path="window" label="Spread over a window" placeholder="10m, or 10%" />
      <${At} ...${form} path="dst.gap" label="A time that clocks skip" of=${[["", "by default"], ["run_after", "run after it"], ["skip", "skip"]]} />
      <${At} ...${form} path="dst.fold" label="A time that comes twice" of=${[["", "by default"], ["first", "the first"], ["second", "the second"], ["both", "both"]]} />
      <${At} ...${form} path="start_at" label="Not before" placeholder="2026-12-01T00:00:00" />
      <${At} ...${form} path="end_at" label="Not after" placeholder="2027-12-01T00:00:00" />
      <${At} ...${form} path="max_runs" label="Runs at most" kind="number" />
    <//>
    <${Group} title="Tell" now=${events?.length ? events.join(", ") : "nobody"} isOpen=${isRefused("events", "on_success", "on_failure")}>
      <div class="full"><${At} ...${form} path="events" label="Events" as=${listText} placeholder=${EVENTS.slice(4).join(", ")} hint=${EVENTS.join(", ")} /></div>
      <${At} ...${form} path="on_failure" label="Call on failure" kind="area" as=${jsonText} placeholder='{"type": "task", "name": "alert"}' />
      <${At} ...${form} path="on_success" label="Call on success" kind="area" as=${jsonText} placeholder='{"type": "task", "name": "next"}' />
    <//>
    <${Group} title="Order" now=${tagsText.show(form.draft.tags) || "no tags"} isOpen=${isRefused("tags", "parent", "description")}>
      <${At} ...${form} path="tags" label="Tags" as=${tagsText} placeholder="team=billing" />
      <${At} ...${form} path="parent" label="Parent" />
      <div class="full"><${At} ...${form} path="description" label="Description" /></div>
    <//>
  </div>`;
}

/** The schedule in words, when it fires, what clocks do to it, what it costs. @param {{ draft: Draft, put: (path: string, value: unknown) => void }} props */
function Outlook({ draft }) {
  const settled = useSettled(scheduleOf(draft), 0.35);
  const load = useLoad(
    async (signal) => (settled.schedule ? api.post("/schedules/preview", {}, { ...settled, count: 5 }, { signal }) : null),
    [JSON.stringify(settled)],
  );
  /** @type {import("../types.d.ts").Preview | null} */
  const seen = load.data;
  const wrong = load.problem?.errors ?? [];
  return html`<aside class="card outlook" aria-label="Outlook" aria-live="polite">
    <div class="body stack">
      ${!settled.schedule && html`<p class="quiet">Write a schedule: here stands what it means, when it fires next, and what it costs.</p>`}
      ${wrong.map(({ field, message }) => html`<p class="error" key=${field}>${field === "schedule" ? message : `${field}: ${message}`}</p>`)}
      ${load.problem && !wrong.length && html`<p class="error">${load.problem.message}</p>`}
      ${seen &&
      html`<p class="sentence">${seen.description}</p>
        <div><h3>Next</h3>
          <ol class="next">${seen.occurrences.map(({ fire_at, local, note }) => html`<li key=${fire_at}>
            <span title=${absolute(fire_at)}>${new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" }).format(new Date(`${local.slice(0, 19)}Z`))}, ${local.slice(11, 16)}</span>
            <span class="quiet"><${Time} at=${fire_at} /></span>
            ${note && html`<span class="chip warn">${note}</span>`}</li>`)}</ol>
          ${!seen.occurrences.length && html`<p class="quiet">It never fires.</p>`}
        </div>
        ${seen.warnings.filter(({ code }) => code !== "dst").map(({ message }) => html`<${Callout} key=${message}>${message}<//>`)}
        ${seen.transitions.length > 0 &&
        html`<div class="callout"><div><strong>When clocks change</strong>
          ${seen.transitions.map(({ transition_at, effect }) => html`<p key=${transition_at}>${effect}.</p>`)}</div></div>`}
        <p class="quiet">About ${seen.fires_per_month.toLocaleString("en")} ${seen.fires_per_month === 1 ? "fire" : "fires"} a month, ${price(seen.dollars_per_month)}.</p>`}
    </div>
  </aside>`;
}

/** @param {number} dollars */
const price = (dollars) => (dollars < 0.01 ? "under $0.01" : `about $${dollars.toFixed(2)}`);
