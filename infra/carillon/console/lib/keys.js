// @ts-check
// The keyboard. Keys act outside fields only, and every one of them has a way by Tab beside it.
import { useLayoutEffect, useRef } from "./html.js";

/** @typedef {Record<string, [words: string, act: (event: KeyboardEvent) => void]>} Keys */

/** @type {Set<{ current: Keys }>} */
const maps = new Set();
const PREFIX_MS = 1200;
let prefixAt = 0;

/** @param {EventTarget | null} target */
const isField = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (isField(event.target)) {
    if (event.key === "Escape") /** @type {HTMLElement} */ (event.target).blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  // A key that is held moves on, and does nothing twice.
  if (event.repeat && !"jk".includes(event.key)) return;
  const isSecond = Date.now() - prefixAt < PREFIX_MS;
  prefixAt = 0;
  const name = isSecond ? `g ${event.key}` : event.key;
  if (name === "g") {
    prefixAt = Date.now();
    return;
  }
  for (const map of [...maps].reverse()) {
    const found = map.current[name];
    if (!found) continue;
    event.preventDefault();
    found[1](event);
    return;
  }
});

/** Keys from the moment at which a component is shown, those of the innermost first. @param {Keys} keys */
export function useKeys(keys) {
  const map = useRef(keys);
  map.current = keys;
  useLayoutEffect(() => {
    maps.add(map);
    return () => void maps.delete(map);
  }, []);
}

/** The keys in force, and what they do. */
export const keysInForce = () =>
  [...new Map([...maps].flatMap((map) => Object.entries(map.current).map(([key, [words]]) => [key, words])))];
