// @ts-check
// Small parts that pages share.
import { html, useEffect, useRef, useState } from "./html.js";
import { tell } from "./feedback.js";
import { may } from "./session.js";

/**
 * What a load has: its content, words while it waits, its problem. What is there stays under a problem.
 * @template T
 * @param {{ of: import("./store.js").Load<T>, children: (data: T) => any }} props
 */
export function Loaded({ of: { data, problem, waiting, again }, children }) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 400);
    return () => clearTimeout(timer);
  }, []);
  return html`
    ${problem && html`<${Trouble} problem=${problem} again=${again} />`}
    ${data !== null ? children(data) : waiting && isSlow && html`<p class="empty" role="status">Loading …</p>`}
  `;
}

/** @param {{ problem: any, again?: () => void }} props */
export const Trouble = ({ problem, again }) =>
  html`<div class="callout bad" role="alert">
    <div><strong>${problem.title ?? "This page failed"}</strong><p>${problem.detail ?? problem.message}</p></div>
    ${again && html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`;

/** A warning, or what is worth knowing. @param {{ tone?: string, title?: string, children: any }} props */
export const Callout = ({ tone = "warn", title, children }) =>
  html`<div class=${`callout ${tone}`}><div>${title && html`<strong>${title}</strong>`}<p>${children}</p></div></div>`;

/** Nothing there, and what to do about it. @param {{ title: string, children?: any }} props */
export const Empty = ({ title, children }) => html`<div class="empty"><strong>${title}</strong><p>${children}</p></div>`;

/** Buttons that write; whoever has not the role has none. @param {{ role?: string, children: any }} props */
export const Writing = ({ role, children }) => (may(role) ? children : null);

/** @param {{ title: string, back?: { href: string, words: string }, sub?: any, children?: any }} props */
export const Head = ({ title, back, sub, children }) =>
  html`<header class="head">
    <div>
      ${back && html`<a class="back" href=${back.href}>${back.words}</a>`}
      <h1>${title}</h1>
      ${sub && html`<div class="sub">${sub}</div>`}
    </div>
    <div class="actions">${children}</div>
  </header>`;

/** Views of one thing. @param {{ of: [id: string, words: string][], at: string, go: (id: string) => void, label: string }} props */
export const Tabs = ({ of, at, go, label }) =>
  html`<div class="tabs" role="group" aria-label=${label}>
    ${of.map(([id, words]) => html`<button type="button" key=${id} aria-pressed=${at === id} onClick=${() => go(id)}>${words}</button>`)}
  </div>`;

/** Text to copy. @param {{ text: string, label: string }} props */
export function Code({ text, label }) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    tell("Copied");
  };
  return html`<figure class="code">
    <figcaption>${label}<button type="button" onClick=${copy}>Copy</button></figcaption>
    <pre tabindex="0" aria-label=${label}>${text}</pre>
  </figure>`;
}

/** A search box, which `/` reaches. @param {{ value: string, set: (value: string) => void, label: string }} props */
export function Search({ value, set, label }) {
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  return html`<label class="search"><span class="hidden">${label}</span>
    <input ref=${box} type="search" data-search placeholder=${`${label}   /`} value=${value} autocomplete="off" spellcheck=${false}
      onInput=${(/** @type {any} */ event) => set(event.target.value)} /></label>`;
}

/** A choice in a bar of filters. @param {{ label: string, value: string, set: (value: string) => void, of: (string | [string, string])[] }} props */
export const Choice = ({ label, value, set, of }) =>
  html`<label class="choice"><span>${label}</span>
    <select value=${value} onChange=${(/** @type {any} */ event) => set(event.target.value)}>
      <option value="">any</option>
      ${of.map((each) => {
        const [id, words] = Array.isArray(each) ? each : [each, each];
        return html`<option key=${id} value=${id}>${words}</option>`;
      })}
    </select></label>`;

/** A free filter, which counts once it is written: a live page is rendered anew meanwhile. @param {{ label: string, value: string, set: (value: string) => void, hint?: string }} props */
export function Filter({ label, value, set, hint }) {
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  /** @param {any} event */
  const put = ({ target }) => {
    setTyped(null);
    set(target.value.trim());
  };
  return html`<label class="choice"><span>${label}</span>
    <input value=${typed ?? value} placeholder=${hint ?? "any"} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} onChange=${put} /></label>`;
}

/** The next page of a list. @param {{ cursor: string | null | undefined, more: () => void }} props */
export const More = ({ cursor, more }) =>
  cursor ? html`<p class="more"><button type="button" onClick=${more}>Show more</button></p>` : null;

/** Figures with their names. @param {{ of: [name: string, value: any][] }} props */
export const Figures = ({ of }) =>
  html`<dl class="figures">${of.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** A target in words. @param {any} target */
export function targetText(target) {
  if (!target) return "";
  const arn = Object.entries(target).find(([name]) => name.endsWith("_arn"))?.[1];
  if (target.type === "task") return `task ${target.name}`;
  if (target.type === "webhook") return `${target.method ?? "POST"} ${target.url}`;
  return `${target.type} ${String(arn ?? "").split(":").pop()}`;
}
