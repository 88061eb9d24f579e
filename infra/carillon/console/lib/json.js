// @ts-check
// JSON whose whole numbers keep all their digits: an id in a payload may be larger than what a number holds exactly.

/** TypeScript does not know these parts of JSON yet. @type {any} */
const json = JSON;

/** True of a number that is kept as its text. @param {unknown} value @returns {boolean} */
export const isDigits = (value) => json.isRawJSON?.(value) ?? false;

/** Browsers of before 2025 tell no source, and round. @param {string} text @returns {any} */
export const parsed = (text) =>
  json.parse(text, (/** @type {string} */ _, /** @type {unknown} */ value, /** @type {{ source?: string } | undefined} */ context) =>
    typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER && context?.source ? json.rawJSON(context.source) : value);
