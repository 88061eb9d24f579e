// @ts-check
// Reading: once, or again and again while somebody looks.
import { useCallback, useEffect, useRef, useState } from "./html.js";

const IDLE_AFTER = 60_000;
const IDLE_SECONDS = 10;
let touchedAt = Date.now();
for (const kind of ["pointermove", "keydown", "focus"]) {
  addEventListener(kind, () => (touchedAt = Date.now()), { passive: true });
}

/**
 * @template T
 * @typedef {object} Load
 * @property {T | null} data
 * @property {import("./api.js").Problem | null} problem
 * @property {boolean} waiting
 * @property {() => Promise<void>} again
 * @property {(data: T) => void} set
 */

/**
 * What a request answers. With `every` seconds it is asked again after each answer: less often while nobody touches
 * the page, not at all while it is hidden, and not any more when `every` is 0. What was there stays until there is more.
 * @template T
 * @param {(signal: AbortSignal, before: T | null) => Promise<T>} ask @param {unknown[]} deps @param {{ every?: number }} [how]
 * @returns {Load<T>}
 */
export function useLoad(ask, deps, { every = 0 } = {}) {
  const [state, setState] = useState(
    /** @type {{ data: T | null, problem: any, waiting: boolean, question: string }} */ ({ data: null, problem: null, waiting: true, question: "" }),
  );
  const latest = useRef(ask);
  latest.current = ask;
  const pace = useRef(every);
  pace.current = every;
  const data = useRef(/** @type {T | null} */ (null));
  const controller = useRef(/** @type {AbortController | null} */ (null));
  const question = useRef("");
  question.current = JSON.stringify(deps);

  const again = useCallback(async () => {
    controller.current?.abort();
    const own = (controller.current = new AbortController());
    const asked = question.current;
    try {
      const got = await latest.current(own.signal, data.current);
      if (own.signal.aborted) return;
      data.current = got;
      setState({ data: got, problem: null, waiting: false, question: asked });
    } catch (problem) {
      if (!own.signal.aborted) setState((before) => ({ ...before, problem, waiting: false }));
    }
  }, []);

  useEffect(() => {
    let over = false;
    // Another question: what was answered to the last one is no beginning of its answer.
    data.current = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    // A page that is opened behind others has something to show when it is looked at.
    let isFirst = true;
    const turn = async () => {
      if (isFirst || !document.hidden) await again();
      isFirst = false;
      if (over || !pace.current) return;
      clearTimeout(timer);
      const isIdle = document.hidden || Date.now() - touchedAt > IDLE_AFTER;
      timer = setTimeout(turn, 1000 * (isIdle ? Math.max(pace.current, IDLE_SECONDS) : pace.current));
    };
    const seen = () => {
      if (document.hidden || !pace.current) return;
      clearTimeout(timer);
      void turn();
    };
    document.addEventListener("visibilitychange", seen);
    void turn();
    return () => {
      over = true;
      document.removeEventListener("visibilitychange", seen);
      clearTimeout(timer);
      controller.current?.abort();
    };
  }, deps);

  return {
    ...state,
    again,
    set: (got) => {
      // It belongs to another question, as a page of a list whose filters have changed since.
      if (state.question !== question.current) return;
      // An answer that is on its way knows nothing of this.
      controller.current?.abort();
      data.current = got;
      setState({ ...state, data: got, problem: null, waiting: false });
    },
  };
}

/** @template R @typedef {{ items: R[], next_cursor: string | null }} Page */
/** `most` are the rows up to which pages are joined: a list that grows by itself has an end. @template R @typedef {Page<R> & { most: number }} Joined */

const MOST_JOINED = 300;

/**
 * The first page anew, before the later rows that are known; alone where something may lie between. In an outage a
 * page of runs has none, and there are some behind it.
 * @template R
 * @param {Page<R>} newest @param {Joined<R> | null} known @param {(row: R) => string} id @returns {Joined<R>}
 */
function continued(newest, known, id) {
  const alone = { ...newest, most: MOST_JOINED };
  if (!known || !newest.next_cursor) return alone;
  if (!newest.items.length) return known;
  const ids = new Set(newest.items.map(id));
  const last = known.items.findLastIndex((row) => ids.has(id(row)));
  const items = [...newest.items, ...known.items.slice(last + 1)];
  const isNext = last >= 0 && items.length > newest.items.length && items.length <= known.most;
  return isNext ? { ...known, items } : alone;
}

/**
 * A list, whose first page is asked again and again; `more` adds the next one, `renew` begins with the first one anew.
 * @template R
 * @param {(cursor: { cursor?: string | null }) => Promise<Page<R>>} ask @param {(row: R) => string} id
 * @param {unknown[]} deps @param {{ every?: number }} [how]
 */
export function usePages(ask, id, deps, how) {
  const [round, setRound] = useState(0);
  const load = useLoad(async (_, /** @type {Joined<R> | null} */ known) => continued(await ask({}), known, id), [...deps, round], how);
  const { items: rows, next_cursor: cursor } = load.data ?? { items: [], next_cursor: null };
  const more = async () => {
    const page = await ask({ cursor });
    const items = [...rows, ...page.items];
    load.set({ items, next_cursor: page.next_cursor, most: items.length + MOST_JOINED });
  };
  return { load, rows, cursor, more, renew: () => setRound((before) => before + 1) };
}

/**
 * A value, `seconds` after it has come to rest.
 * @template T
 * @param {T} value @param {number} [seconds] @returns {T}
 */
export function useSettled(value, seconds = 0.2) {
  const [settled, setSettled] = useState(value);
  const text = JSON.stringify(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), seconds * 1000);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** A preference of this browser. @param {string} name @param {string} otherwise */
export function preference(name, otherwise) {
  /** @type {Set<() => void>} */
  const listeners = new Set();
  let value = localStorage.getItem(`carillon-${name}`) ?? otherwise;
  return {
    get: () => value,
    /** @param {string} wanted */
    set: (wanted) => {
      value = wanted;
      localStorage.setItem(`carillon-${name}`, wanted);
      for (const listener of listeners) listener();
    },
    use: () => {
      const [, setCount] = useState(0);
      useEffect(() => {
        const listener = () => setCount((count) => count + 1);
        listeners.add(listener);
        return () => void listeners.delete(listener);
      }, []);
      return value;
    },
  };
}
