// @ts-check
// Tables: j and k move among rows, Enter follows the row's link, x selects.
import { classes, html, useRef } from "./html.js";
import { useKeys } from "./keys.js";

/**
 * @template T
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: T) => any} cell
 * @property {string} [kind] classes of its cells: "main" (has the row's link), "wide" (not on a phone), "number"
 */

/**
 * @template T
 * @typedef {object} Props
 * @property {string} label
 * @property {T[]} rows
 * @property {(row: T) => string} id
 * @property {Column<T>[]} columns
 * @property {Record<string, [string, (row: T) => void]>} [keys] that act on the row with the focus
 * @property {Set<string>} [selected]
 * @property {(selected: Set<string>) => void} [select]
 * @property {string} [current] the id of the row that is shown beside
 */

/**
 * @template T
 * @param {Props<T>} props
 */
export function Table({ label, rows, id, columns, keys = {}, selected, select, current }) {
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  const links = () => [.../** @type {HTMLElement} */ (body.current).querySelectorAll("tr")];
  const at = () => links().findIndex((row) => row.contains(document.activeElement));
  /** @param {number} step */
  const move = (step) => {
    const all = links();
    const next = Math.min(all.length - 1, Math.max(0, at() < 0 ? (step > 0 ? 0 : all.length - 1) : at() + step));
    /** @type {HTMLElement | null} */ (all[next]?.querySelector(".main a, .main button, a, button"))?.focus();
    all[next]?.scrollIntoView({ block: "nearest" });
  };
  /** @param {T} row */
  const toggle = (row) => {
    const next = new Set(selected);
    if (!next.delete(id(row))) next.add(id(row));
    select?.(next);
  };
  /** @param {(row: T) => void} act */
  const here = (act) => () => {
    const row = rows[at()];
    if (row) act(row);
  };
  useKeys({
    j: ["next row", () => move(1)],
    k: ["row before", () => move(-1)],
    ...(select ? { x: ["select the row", here(toggle)] } : {}),
    ...Object.fromEntries(Object.entries(keys).map(([key, [words, act]]) => [key, [words, here(act)]])),
  });
  const isAll = rows.length > 0 && rows.every((row) => selected?.has(id(row)));
  return html`<table aria-label=${label}>
    <thead>
      <tr>
        ${select &&
        html`<th class="pick"><input type="checkbox" aria-label="Select all" checked=${isAll}
          onChange=${() => select(isAll ? new Set() : new Set(rows.map(id)))} /></th>`}
        ${columns.map(({ title, kind }) => html`<th key=${title} class=${kind}>${title || html`<span class="hidden">Actions</span>`}</th>`)}
      </tr>
    </thead>
    <tbody ref=${body}>
      ${rows.map((row) => {
        const isPicked = selected?.has(id(row));
        return html`<tr key=${id(row)} class=${classes(isPicked && "picked", current === id(row) && "current")}>
          ${select &&
          html`<td class="pick"><input type="checkbox" aria-label="Select" checked=${isPicked} onChange=${() => toggle(row)} /></td>`}
          ${columns.map(({ title, cell, kind }) => html`<td key=${title} class=${kind} data-title=${title}>${cell(row)}</td>`)}
        </tr>`;
      })}
    </tbody>
  </table>`;
}
