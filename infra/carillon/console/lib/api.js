// @ts-check
// Requests to the API, typed by its OpenAPI description. Every failure is a Problem.
import { parsed } from "./json.js";
import { BASE, authorize, renew } from "./session.js";

/** @typedef {import("../types.d.ts").paths} paths */
/** @typedef {Record<string, string | number | boolean | null | undefined>} Values */
/** @typedef {{ field: string, message: string }} FieldProblem */
/** @typedef {{ headers?: Record<string, string>, signal?: AbortSignal }} More */

const MOST_REPETITIONS = 5;

/** What a request failed by: the API's own words (RFC 9457), or the network's. */
export class Problem extends Error {
  /** @param {number} status @param {string} title @param {string} detail @param {FieldProblem[]} errors @param {string} type */
  constructor(status, title, detail, errors = [], type = "") {
    super(detail ? `${title}: ${detail}` : title);
    Object.assign(this, { status, title, detail, errors, type });
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.errors = errors;
    this.type = type;
  }
}

/** @param {string} path @param {Values} values */
function address(path, values) {
  const left = { ...values };
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    const value = left[name];
    delete left[name];
    return encodeURIComponent(String(value));
  });
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(left)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const words = query.toString();
  return `${BASE}${filled}${words && `?${words}`}`;
}

/** @param {string} method @param {string} path @param {Values} values @param {unknown} body @param {More} more */
async function answer(method, path, values, body, more) {
  /** @type {Record<string, string>} */
  const headers = { ...more.headers };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const once = async () => {
    try {
      return await fetch(address(path, values), {
        method, headers: { ...headers, ...authorize() }, signal: more.signal,
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new Problem(0, "The API cannot be reached", "the network, or the console's server, does not answer");
    }
  };
  let response = await once();
  if (response.status === 401 && (await renew())) response = await once();
  for (let count = 0; response.status === 429 && count < MOST_REPETITIONS; count += 1) {
    await new Promise((resume) => setTimeout(resume, 1000 * Number(response.headers.get("Retry-After") ?? 1)));
    response = await once();
  }
  if (response.status === 304 || response.ok) return response;
  throw await problem(response);
}

/** @param {Response} response */
async function problem(response) {
  /** @type {any} */
  let told = {};
  try {
    told = await response.json();
  } catch {
    // Not JSON: the status has to do.
  }
  const title = told.title ?? told.message ?? `Status ${response.status}`;
  return new Problem(response.status, title, told.detail ?? "", told.errors ?? [], told.type ?? "");
}

/** @param {Response} response */
const bodyOf = async (response) => (response.status === 204 || response.status === 304 ? null : parsed(await response.text()));

export const api = {
  /**
   * @template {keyof paths} P
   * @param {P} path @param {Values} [values] fill the path's names; the others are the query @param {More} [more]
   * @returns {Promise<import("../types.d.ts").Answer<P, "get">>}
   */
  get: async (path, values = {}, more = {}) => bodyOf(await answer("GET", path, values, undefined, more)),

  /**
   * A body with its ETag, for `If-Match`.
   * @template {keyof paths} P
   * @param {P} path @param {Values} [values]
   * @returns {Promise<{ body: import("../types.d.ts").Answer<P, "get">, etag: string }>}
   */
  tagged: async (path, values = {}) => {
    const response = await answer("GET", path, values, undefined, {});
    return { body: await bodyOf(response), etag: response.headers.get("ETag") ?? "*" };
  },

  /**
   * @template {keyof paths} P
   * @param {P} path @param {Values} [values] @param {unknown} [body] @param {More} [more]
   * @returns {Promise<import("../types.d.ts").Answer<P, "post">>}
   */
  post: async (path, values = {}, body = undefined, more = {}) => bodyOf(await answer("POST", path, values, body, more)),

  /**
   * @template {keyof paths} P
   * @param {P} path @param {Values} values @param {unknown} body @param {More} [more]
   * @returns {Promise<import("../types.d.ts").Answer<P, "put">>}
   */
  put: async (path, values, body, more = {}) => bodyOf(await answer("PUT", path, values, body, more)),

  /**
   * @template {keyof paths} P
   * @param {P} path @param {Values} values @param {unknown} body @param {string} [etag]
   * @returns {Promise<import("../types.d.ts").Answer<P, "patch">>}
   */
  patch: async (path, values, body, etag = "*") =>
    bodyOf(await answer("PATCH", path, values, body, { headers: { "If-Match": etag } })),

  /** @param {keyof paths} path @param {Values} values */
  delete: async (path, values) => bodyOf(await answer("DELETE", path, values, undefined, {})),

  /**
   * Repeat a change of many jobs under the cursor that it answers; the number changed.
   * @param {"/jobs/pause" | "/jobs/resume"} path @param {Values} values @param {unknown} [body]
   */
  all: async (path, values, body = {}) => {
    let changed = 0;
    /** @type {string | null} */
    let cursor = null;
    do {
      /** @type {import("../types.d.ts").Changed} */
      const told = await bodyOf(await answer("POST", path, { ...values, cursor }, body, {}));
      changed += told.changed;
      cursor = told.next_cursor;
    } while (cursor);
    return changed;
  },
};

/** A fresh key, under which a request takes effect once however often it is sent. */
export const onceKey = () => ({ headers: { "Idempotency-Key": crypto.randomUUID() } });
