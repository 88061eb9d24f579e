// @ts-check
// What became of an action, and questions before it.
import { html, useEffect, useRef, useState } from "./html.js";

/** @typedef {{ id: number, words: string, detail: string, isBad: boolean }} Note */

const STAYS_MS = 6000;
let count = 0;
/** @type {Note[]} */
let notes = [];
/** @type {(notes: Note[]) => void} */
let showNotes = () => {};
/** @type {(question: Question | null) => void} */
let showQuestion = () => {};

/** @param {Note[]} wanted */
function put(wanted) {
  notes = wanted;
  showNotes(wanted);
}

/** A line that goes by itself; a problem stays until it is closed. @param {string} words @param {string} [detail] @param {boolean} [isBad] */
export function tell(words, detail = "", isBad = false) {
  const note = { id: (count += 1), words, detail, isBad };
  put([...notes.slice(-3), note]);
  if (!isBad) setTimeout(() => put(notes.filter((each) => each !== note)), STAYS_MS);
}

/**
 * Do it, and tell its end: `done` (or what it makes of the answer), or the problem. The answer, or undefined. Nothing is told without words.
 * @template T
 * @param {string | ((answer: T) => string | 0 | undefined)} done @param {() => Promise<T>} act @returns {Promise<T | undefined>}
 */
export async function attempt(done, act) {
  try {
    const answer = await act();
    const words = typeof done === "string" ? done : done(answer);
    if (words) tell(words);
    return answer;
  } catch (error) {
    const { title, message, detail, errors = [] } = /** @type {any} */ (error);
    const more = errors.map((/** @type {any} */ each) => `${each.field}: ${each.message}`).join("; ");
    tell(title ?? message, [detail, more].filter(Boolean).join(" "), true);
    return undefined;
  }
}

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {any} [body] a paragraph, or the fields of a form
 * @property {string} yes the word on the button
 * @property {boolean} [isDangerous]
 * @property {(given: Record<string, string> | null) => void} answer
 */

let isAsking = false;

/**
 * Ask in a dialog; the values of its fields by their names, or null. A question that comes late, while another is
 * shown, is answered with null: whoever is about to say yes to that one would say it to this one.
 * @param {Omit<Question, "answer">} question @returns {Promise<Record<string, string> | null>}
 */
export async function ask(question) {
  if (isAsking) return null;
  isAsking = true;
  const given = await new Promise((resolve) => showQuestion({ ...question, answer: resolve }));
  isAsking = false;
  return given;
}

/** @param {Omit<Question, "answer">} question */
export const confirm = async (question) => (await ask(question)) !== null;

/** A modal dialog; the browser keeps the focus in it, closes it on Escape, and gives the focus back at its end: so every way out closes it. @param {{ title: string, close: () => void, children: any, wide?: boolean }} props */
export function Dialog({ title, close, children, wide = false }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => dialog.current?.showModal(), []);
  return html`<dialog ref=${dialog} class=${wide ? "wide" : ""} aria-label=${title} onClose=${close}>
    <header><h2>${title}</h2><button type="button" class="plain" aria-label="Close" onClick=${leave}>×</button></header>
    ${children}
  </dialog>`;
}

/** Close the dialog that something is part of. @param {Event} event */
const leave = ({ target }) => /** @type {HTMLElement} */ (target).closest("dialog")?.close();

/** The dialog and the notes of the whole page. */
export function Feedback() {
  const [shown, setShown] = useState(notes);
  const [question, setQuestion] = useState(/** @type {Question | null} */ (null));
  useEffect(() => {
    showNotes = setShown;
    showQuestion = setQuestion;
  }, []);
  const given = useRef(/** @type {Record<string, string> | null} */ (null));
  const end = () => {
    setQuestion(null);
    question?.answer(given.current);
    given.current = null;
  };
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
    given.current = Object.fromEntries([...data].map(([name, value]) => [name, String(value)]));
    leave(event);
  };
  return html`
    ${question &&
    html`<${Dialog} title=${question.title} close=${end}>
      <form onSubmit=${submit}>
        <div class="body">${question.body}</div>
        <footer>
          <button type="button" onClick=${leave}>Cancel</button>
          <button class=${question.isDangerous ? "danger" : "primary"}>${question.yes}</button>
        </footer>
      </form>
    <//>`}
    <div class="notes" role="status" aria-live="polite">
      ${shown.map(
        (note) => html`<div key=${note.id} class=${note.isBad ? "note bad" : "note"}>
          <div><strong>${note.words}</strong>${note.detail && html`<p>${note.detail}</p>`}</div>
          <button type="button" class="plain" aria-label="Close" onClick=${() => put(notes.filter((each) => each !== note))}>×</button>
        </div>`,
      )}
    </div>
  `;
}
