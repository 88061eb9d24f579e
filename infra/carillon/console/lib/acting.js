// @ts-check
// What one does to jobs, each with its question: on the list, on a job's page, by key.
import { api, onceKey } from "./api.js";
import { ask, attempt, confirm, tell } from "./feedback.js";
import { html } from "./html.js";
import { parsed } from "./json.js";

/** @typedef {{ job_id: string, name: string, state?: string, managed_by?: string | null }} Named */

/** The words for the number done, none where nothing was: its problem has been told. @param {string} verb @param {Named[]} jobs */
const done = (verb, jobs) => (/** @type {number} */ count) =>
  count && `${verb} ${jobs.length === 1 ? jobs[0]?.name : `${count} job${count === 1 ? "" : "s"}`}`;

const AT_A_TIME = 4;
const DURATIONS = [["", "until somebody resumes it"], ["1", "for an hour"], ["8", "for 8 hours"], ["24", "for a day"], ["168", "for a week"]];

/** @param {Named[]} jobs */
export const namesOf = (jobs) => (jobs.length === 1 ? jobs[0]?.name ?? "" : `${jobs.length} jobs`);

/**
 * Do it to each, some at a time; the number done.
 * @template T
 * @param {T[]} jobs @param {(job: T) => Promise<unknown>} act @param {(done: number) => void} [progress]
 */
export async function toEach(jobs, act, progress) {
  const left = [...jobs];
  let done = 0;
  /** @type {any} */
  let failure = null;
  const work = async () => {
    for (let job = left.shift(); job; job = left.shift()) {
      try {
        await act(job);
        done += 1;
        progress?.(done);
      } catch (error) {
        failure ??= error;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  if (failure) tell(`${jobs.length - done} of ${jobs.length} failed`, failure.message, true);
  return done;
}

const IN_A_CALL = 100;

/**
 * Change jobs, many in a call; the number changed.
 * @param {{ job_id: string, patch: object }[]} items @param {(done: number) => void} [progress]
 */
export async function patchAll(items, progress) {
  let [done, changed] = [0, 0];
  /** @type {string | undefined} */
  let failure;
  while (done < items.length) {
    const part = items.slice(done, done + IN_A_CALL);
    const answer = await api.patch("/jobs/bulk", {}, { items: part });
    changed += answer.changed;
    failure ??= answer.items.find(({ problem }) => problem)?.problem?.detail;
    done += part.length;
    progress?.(done);
  }
  if (failure) tell(`${items.length - changed} of ${items.length} failed`, failure, true);
  return changed;
}

const pauseFields = () => html`
  <label class="field"><span>Pause</span>
    <select name="hours">${DURATIONS.map(([hours, words]) => html`<option value=${hours}>${words}</option>`)}</select></label>
  <label class="field"><span>Reason</span><input name="reason" maxlength="200" placeholder="database move" autocomplete="off" /></label>`;

/**
 * Ask how long and why, and pause. True if something was done.
 * @param {Named[]} jobs @param {(body: object) => Promise<number>} [all] pauses them in fewer requests
 * @param {string} [title]
 */
export async function pause(jobs, all, title = `Pause ${namesOf(jobs)}`) {
  const given = await ask({ title, body: pauseFields(), yes: "Pause" });
  if (!given) return false;
  const until = given.hours ? new Date(Date.now() + Number(given.hours) * 3_600_000).toISOString() : undefined;
  const body = { reason: given.reason || undefined, until };
  return pauseWith(jobs, body, all);
}

/** @param {Named[]} jobs @param {object} body @param {((body: object) => Promise<number>)} [all] */
async function pauseWith(jobs, body, all) {
  const count = await attempt(
    done("Paused", jobs),
    () => (all ? all(body) : toEach(jobs, ({ job_id }) => api.post("/jobs/{job_id}/pause", { job_id }, body))),
  );
  return count !== undefined;
}

/** @param {Named[]} jobs */
export async function resume(jobs) {
  const act = () => toEach(jobs, ({ job_id }) => api.post("/jobs/{job_id}/resume", { job_id }));
  return (await attempt(done("Resumed", jobs), act)) !== undefined;
}

/** Have a field say what is wrong with its JSON before the question is answered: what is written stays. @param {any} event */
function checkJson({ target }) {
  try {
    if (target.value.trim()) parsed(target.value);
    target.setCustomValidity("");
  } catch (/** @type {any} */ error) {
    target.setCustomValidity(`This is no JSON: ${error.message}`);
  }
}

/** Ask for a payload, and run it now. @param {Named} job */
export async function runNow(job) {
  const body = html`
    <label class="field"><span>Payload</span><textarea name="payload" rows="4" onInput=${checkJson} placeholder="the job's own; or JSON for this run"></textarea></label>
    <label class="field"><span>Note</span><input name="note" maxlength="200" autocomplete="off" /></label>`;
  const given = await ask({ title: `Run ${job.name} now`, body, yes: "Run now" });
  if (!given) return undefined;
  return attempt("Sent: it starts in a moment", async () => {
    /** @type {Record<string, unknown>} */
    const wanted = {};
    if (given.payload?.trim()) wanted.payload = parsed(given.payload);
    if (given.note) wanted.note = given.note;
    return api.post("/jobs/{job_id}/run", { job_id: job.job_id }, Object.keys(wanted).length ? wanted : undefined, onceKey());
  });
}

/** @param {Named[]} jobs */
export async function remove(jobs) {
  const managed = jobs.filter(({ managed_by }) => managed_by).length;
  const words = managed ? ` ${managed === 1 ? "One is" : `${managed} are`} defined in a manifest, and will be refused.` : "";
  const isSure = await confirm({
    title: `Delete ${namesOf(jobs)}?`, yes: "Delete", isDangerous: true,
    body: html`<p>Nothing fires any more from now on. The history stays until it expires.${words}</p>`,
  });
  if (!isSure) return false;
  const act = () => toEach(jobs, ({ job_id }) => api.delete("/jobs/{job_id}", { job_id }));
  return (await attempt(done("Deleted", jobs), act)) !== undefined;
}

/** @param {Named[]} jobs */
export async function tag(jobs) {
  const body = html`
    <label class="field"><span>Key</span><input name="key" required pattern="[A-Za-z0-9_.\\-]+" placeholder="team" autocomplete="off" /></label>
    <label class="field"><span>Value</span><input name="value" placeholder="billing" autocomplete="off" /></label>`;
  const given = await ask({ title: `Tag ${namesOf(jobs)}`, body, yes: "Tag" });
  if (!given?.key) return false;
  const tags = { [given.key]: given.value ?? "" };
  const act = () => patchAll(jobs.map(({ job_id }) => ({ job_id, patch: { tags } })));
  return (await attempt(done("Tagged", jobs), act)) !== undefined;
}
