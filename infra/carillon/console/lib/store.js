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
    /** @type {{ data: T | null, problem: any, waiting: boolean }} */ ({ data: null, problem: null, waiting: true }),
  );
  const latest = useRef(ask);
  latest.current = ask;
  const pace = useRef(every);
  pace.current = every;
  const data = useRef(/** @type {T | null} */ (null));
  const controller = useRef(/** @type {AbortController | null} */ (null));

  const again = useCallback(async () => {
    controller.current?.abort();
    const own = (controller.current = new AbortController());
    try {
      const got = await latest.current(own.signal, data.current);
      if (own.signal.aborted) return;
      data.current = got;
      setState({ data: got, problem: null, waiting: false });
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
      // An answer that is on its way knows nothing of this.
      controller.current?.abort();
      data.current = got;
      setState({ data: got, problem: null, waiting: false });
    },
  };
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
