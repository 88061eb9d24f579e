// @ts-check
// Fields of forms: a label, a hint, and the API's own words beside the field that it refuses.
import { html, useId } from "./html.js";

/**
 * @typedef {object} FieldProps
 * @property {string} label
 * @property {string} name a path in the body: "retry.max_attempts"
 * @property {any} value
 * @property {(value: any) => void} set
 * @property {string} [hint]
 * @property {import("./api.js").FieldProblem[]} [errors] of the whole form; those of this path are shown
 * @property {string} [kind] "text" (default), "number", "area", "check"
 * @property {(string | [string, string])[]} [of] the choices of a list
 * @property {string} [placeholder]
 * @property {string[]} [suggest]
 * @property {boolean} [autofocus]
 */

/** @param {FieldProps} props */
export function Field({ label, name, value, set, hint, errors = [], kind = "text", of, placeholder, suggest, autofocus }) {
  const id = useId();
  const own = errors.filter((each) => each.field === name || each.field.startsWith(`${name}.`) || each.field.startsWith(`${name}[`));
  const described = [hint && `${id}-hint`, own.length && `${id}-error`].filter(Boolean).join(" ") || undefined;
  /** @type {any} */
  const common = {
    id, name, placeholder, autofocus, "aria-invalid": own.length ? "true" : undefined, "aria-describedby": described,
    spellcheck: false, autocomplete: "off",
  };
  /** @param {any} event */
  const put = (event) => set(event.target.value);
  let control;
  if (of) {
    control = html`<select ...${common} value=${value ?? ""} onChange=${put}>
      ${of.map((each) => {
        const [own, words] = Array.isArray(each) ? each : [each, each];
        return html`<option key=${own} value=${own}>${words}</option>`;
      })}
    </select>`;
  } else if (kind === "area") {
    control = html`<textarea ...${common} rows="4" value=${value ?? ""} onInput=${put}></textarea>`;
  } else if (kind === "check") {
    control = html`<input ...${common} type="checkbox" checked=${Boolean(value)} onChange=${(/** @type {any} */ event) => set(event.target.checked)} />`;
  } else {
    control = html`<input ...${common} type=${kind} list=${suggest ? `${id}-list` : undefined} value=${value ?? ""} onInput=${put} />
      ${suggest && html`<datalist id=${`${id}-list`}>${suggest.map((each) => html`<option key=${each} value=${each} />`)}</datalist>`}`;
  }
  return html`<div class=${`field ${kind}`}>
    <label for=${id}>${label}</label>
    ${control}
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    ${own.length > 0 &&
    html`<p class="error" id=${`${id}-error`} role="alert">${own.map(({ field, message }) => (field === name ? message : `${field}: ${message}`)).join("; ")}</p>`}
  </div>`;
}

/** Fields that stay closed until somebody wants them; open where one of them is refused. @param {{ title: string, now: string, isOpen?: boolean, children: any }} props */
export const Group = ({ title, now, isOpen = false, children }) =>
  html`<details class="group" open=${isOpen}><summary><span>${title}</span><span class="quiet">${now}</span></summary><div class="fields">${children}</div></details>`;
