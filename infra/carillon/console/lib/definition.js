// @ts-check
// A job's settings, and how they are written: YAML for a manifest, JSON, curl, the command line.
import { DEFAULTS } from "../vendor/defaults.js";
import { isDigits } from "./json.js";
import { team } from "./session.js";

/** @typedef {import("../types.d.ts").Job} Job */

/** @param {unknown} value @returns {value is Record<string, unknown>} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** What says nothing: the API answers members without a value, too. @param {unknown} value */
const isNothing = (value) => value === null || (typeof value === "object" && !Object.keys(value).length);

/** Words of the user's own, which stay as they are. */
const VERBATIM = ["payload", "schedule"];

/** The members that say more than their defaults, of objects within, too. @type {(own: Record<string, any>, defaults: Record<string, any>) => Record<string, any>} */
const beside = (own, defaults) =>
  Object.fromEntries(
    Object.entries(own)
      .map(([name, value]) => [name, isObject(value) && !VERBATIM.includes(name) ? beside(value, defaults[name] ?? {}) : value])
      .filter(([name, value]) => value !== undefined && (name === "payload" || !isNothing(value)) && JSON.stringify(value) !== JSON.stringify(defaults[name])),
  );

/** The settings that differ from their defaults, without the name. @param {Job} job @returns {Record<string, any>} */
export function settingsOf(job) {
  /** @type {Record<string, unknown>} */
  const all = { ...job };
  return beside(Object.fromEntries(Object.keys(DEFAULTS).filter((name) => name !== "name").map((name) => [name, all[name]])), DEFAULTS);
}

const PLAIN = /^[A-Za-z_][\w ./()@+-]*$/;
const RESERVED = /^(true|false|null|yes|no|on|off|y|n|~)$/i;

/** What YAML does not take as it is, or reads as the end of a line. */
const UNPRINTED = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;
/** @param {string} one */
const escaped = (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** @param {unknown} value */
const scalar = (value) =>
  typeof value === "string" && PLAIN.test(value) && !RESERVED.test(value) && value === value.trim()
    ? value
    : JSON.stringify(value).replace(UNPRINTED, escaped);

/** @param {any} value @param {string} [indent] @returns {string} */
export function yaml(value, indent = "") {
  const isList = Array.isArray(value);
  const entries = isList ? value.map((own) => ["-", own]) : Object.entries(value);
  return entries
    .map(([name, own]) => {
      const head = indent + (isList ? "-" : `${scalar(name)}:`);
      if (own === null || typeof own !== "object" || isDigits(own)) return `${head} ${scalar(own)}\n`;
      if (!Object.keys(own).length) return `${head} ${Array.isArray(own) ? "[]" : "{}"}\n`;
      const inner = yaml(own, `${indent}  `);
      return isList ? `${head} ${inner.trimStart()}` : `${head}\n${inner}`;
    })
    .join("");
}

/** Jobs as a manifest has them. @param {Job[]} jobs */
export const manifestOf = (jobs) => yaml({ jobs: Object.fromEntries(jobs.map((job) => [job.name, settingsOf(job)])) });

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A shell that is typed to reads `!` within double quotes as an earlier command. @param {Job} job */
export const curlOf = (job) =>
  `curl -X PUT "$CARILLON_API_URL/jobs/named/${encodeURIComponent(job.name).replaceAll("!", "%21")}" \\\n` +
  `  -H "Authorization: Bearer $CARILLON_TOKEN" -H "Content-Type: application/json" \\\n` +
  (team() && `  -H ${quoted(`Carillon-Team: ${team()}`)} \\\n`) +
  `  -d ${quoted(JSON.stringify(settingsOf(job), null, 2))}\n`;

/** @param {Job} job */
export function commandOf(job) {
  const carillon = team() ? `carillon --team ${quoted(team())}` : "carillon";
  return `# jobs.yaml\n${manifestOf([job])}\n# then\n${carillon} diff jobs.yaml\n${carillon} apply jobs.yaml\n`;
}

/** Offer text as a file. @param {string} name @param {string} text */
export function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/yaml" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
