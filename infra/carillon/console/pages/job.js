// @ts-check
import { html } from "../lib/html.js";
import { Empty } from "../lib/parts.js";

export default function Page() {
  return html`<${Empty} title="Comes soon" />`;
}
