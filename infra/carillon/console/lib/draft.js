// @ts-check
// A job while it is written: its settings as an object, edited by paths such as "retry.max_attempts".
import { DEFAULTS } from "../vendor/defaults.js";
import { settingsOf } from "./definition.js";
import { parsed } from "./json.js";

/** @typedef {Record<string, any>} Draft */

/** @param {Draft} draft @param {string} path @returns {any} */
export const valueAt = (draft, path) =>
  path.split(".").reduce((/** @type {any} */ within, name) => within?.[name], draft);

/** The default at a path, as a hint in an empty field. @param {string} path */
export function defaultAt(path) {
  const value = valueAt(DEFAULTS, path);
  return value === null || value === undefined || (Array.isArray(value) && !value.length) ? undefined : String(value);
}

/** The draft with a value at a path; nothing there for undefined. @param {Draft} draft @param {string} path @param {unknown} value @returns {Draft} */
export function withValue(draft, path, value) {
  const [name = "", ...rest] = path.split(".");
  const { [name]: before, ...others } = draft;
  const inner = rest.length ? withValue(typeof before === "object" && before ? before : {}, rest.join("."), value) : value;
  const isEmpty = inner === undefined || (rest.length && !Object.keys(/** @type {object} */ (inner)).length);
  return isEmpty ? others : { ...others, [name]: inner };
}

/** A list as text in one field, and back. */
export const listText = {
  /** @param {string[] | undefined} list */
  show: (list) => (list ?? []).join(", "),
  /** @param {string} text */
  read: (text) => {
    const list = text.split(/[,\n]/).map((each) => each.trim()).filter(Boolean);
    return list.length ? list : undefined;
  },
};

/** Tags as `team=billing, env=prod`. */
export const tagsText = {
  /** @param {Record<string, string> | undefined} tags */
  show: (tags) => Object.entries(tags ?? {}).map(([key, value]) => `${key}=${value}`).join(", "),
  /** @param {string} text */
  read: (text) => {
    const pairs = (listText.read(text) ?? []).map((each) => {
      const [key = "", ...value] = each.split("=");
      return [key.trim(), value.join("=").trim()];
    });
    return pairs.length ? Object.fromEntries(pairs) : undefined;
  },
};

/** What is not text, as JSON. */
export const jsonText = {
  /** @param {unknown} value */
  show: (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2)),
  /** Text stays text where it is no JSON object or list. @param {string} text */
  read: (text) => {
    const trimmed = text.trim();
    if (!trimmed) return undefined;
    if (!/^[[{]/.test(trimmed)) return text;
    try {
      return parsed(trimmed);
    } catch {
      return text;
    }
  },
};

/** What the API gets: all that is set. @param {Draft} draft */
export const bodyOf = (draft) => ({ ...draft });

/** Members that a change replaces, and those that it merges while they keep their type. */
const WHOLE = new Set(["payload", "schedule"]);
const TARGET = new Set(["target", "on_success", "on_failure"]);

/** @param {unknown} value @returns {value is Draft} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** What makes `after` of `before` (RFC 7396): the members that differ, null for those that are gone. @param {Draft} before @param {Draft} after @param {boolean} [isJob] @returns {Draft} */
function patchOf(before, after, isJob = false) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return Object.fromEntries(
    names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name])).map((name) => {
      const [old, own] = [before[name], after[name]];
      const isMerged = isObject(old) && isObject(own) && !(isJob && (WHOLE.has(name) || (TARGET.has(name) && old.type !== own.type)));
      return [name, isMerged ? patchOf(old, own) : own ?? null];
    }),
  );
}

/** A job as a draft. @param {import("../types.d.ts").Job} job @returns {Draft} */
export const draftOf = (job) => ({ name: job.name, ...settingsOf(job) });

/** The members of a change of a job. @param {Draft} first @param {Draft} draft */
export const changesOf = (first, draft) => patchOf(first, draft, true);

const OF_SCHEDULE = ["schedule", "timezone", "start_at", "end_at", "max_runs", "except", "dst", "window", "calendar"];

/** The part that a preview takes. @param {Draft} draft */
export const scheduleOf = (draft) =>
  Object.fromEntries(OF_SCHEDULE.filter((name) => draft[name] !== undefined && draft[name] !== null).map((name) => [name, draft[name]]));

/** Each kind of target: its fields, and their hints. @type {Record<string, [name: string, label: string, hint?: string][]>} */
export const TARGETS = {
  webhook: [["url", "URL", "https://…"]],
  task: [["name", "Task", "a registered function"]],
  lambda: [["function_arn", "Function ARN"]],
  sqs: [["queue_arn", "Queue ARN"]],
  sns: [["topic_arn", "Topic ARN"]],
  eventbridge: [["bus_arn", "Bus ARN"], ["source", "Source"], ["detail_type", "Detail type"]],
  stepfunctions: [["state_machine_arn", "State machine ARN"]],
  ecs: [["task_definition_arn", "Task definition ARN"], ["cluster_arn", "Cluster ARN"]],
  batch: [["job_definition_arn", "Job definition ARN"], ["job_queue_arn", "Job queue ARN"]],
};
export const METHODS = ["POST", "GET", "PUT", "PATCH", "DELETE"];
