// @ts-check
// Who is told of what, and whether the messages arrive.
import { api } from "../lib/api.js";
import { html } from "../lib/html.js";
import { Empty, Head, Loaded, Writing } from "../lib/parts.js";
import { href } from "../lib/router.js";
import { Status } from "../lib/status.js";
import { useLoad } from "../lib/store.js";
import { Table } from "../lib/table.js";
import { Time } from "../lib/time.js";
import { channelText } from "./notification.js";

/** @typedef {import("../types.d.ts").Notification} Notification */

const add = html`<a class="button primary" href=${href("/notifications/new")}>New notification</a>`;

export default function Notifications() {
  const load = useLoad(() => api.get("/notifications", { limit: 50 }), [], { every: 10 });
  return html`
    <${Head} title="Notifications" sub="The first failure is told at once, more of them in one digest, then what works again"><${Writing} role="admin">${add}<//><//>
    <${Loaded} of=${load}>
      ${(/** @type {{ items: Notification[] }} */ { items }) =>
        items.length
          ? html`<div class="card"><${Table} label="Notifications" rows=${items} id=${(/** @type {Notification} */ { name }) => name} columns=${COLUMNS} /></div>`
          : html`<${Empty} title="Nobody is told when a run fails">Make a notification for Slack, e-mail or a webhook, and try it with a test message.<//>`}
    <//>
  `;
}

/** @param {Notification} of */
const Delivery = ({ last_delivery: last, is_dead }) =>
  last
    ? html`<${Status} of=${is_dead ? "dead" : last.status} words=${is_dead ? `dead: ${last.error_kind ?? "no answer"}` : undefined} /> <span class="quiet"><${Time} at=${last.at} /></span>`
    : html`<span class="quiet">none yet</span>`;

/** @type {import("../lib/table.js").Column<Notification>[]} */
const COLUMNS = [
  { title: "Name", kind: "main", cell: ({ name }) => html`<a href=${href(`/notifications/${name}`)}>${name}</a>` },
  { title: "To", cell: ({ to }) => channelText(to) },
  { title: "Tells", cell: ({ on }) => on.map((event) => html`<span class="chip" key=${event}>${event}</span> `) },
  { title: "Of jobs", cell: ({ jobs, tags }) => [jobs, ...Object.entries(tags).map(([key, value]) => `${key}=${value}`)].filter(Boolean).join(", ") || html`<span class="quiet">all</span>` },
  { title: "Last message", kind: "nowrap", cell: Delivery },
];
