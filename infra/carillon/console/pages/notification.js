// @ts-check
// One notification: what it tells, of which jobs, to whom; with a test.
import { api, Problem } from "../lib/api.js";
import { tagsText } from "../lib/draft.js";
import { attempt, confirm, tell } from "../lib/feedback.js";
import { Field } from "../lib/fields.js";
import { html, useState } from "../lib/html.js";
import { Callout, Head, Loaded, Writing } from "../lib/parts.js";
import { go, href } from "../lib/router.js";
import { Status } from "../lib/status.js";
import { useLoad } from "../lib/store.js";
import { Time } from "../lib/time.js";

/** @typedef {import("../types.d.ts").Notification} Notification */
/** @typedef {Record<string, any>} Body */

/** @type {[event: string, words: string][]} */
const EVENTS = [
  ["run.dead", "a run has failed for good"],
  ["run.missed", "a run was missed"],
  ["job.paused", "a job was paused since it kept failing"],
  ["job.slowed", "a job is slow, and stands apart"],
  ["run.recovered", "a job works again"],
];
/** The member of each channel that says whom, its label, and a hint. @type {Record<string, [member: string, label: string, hint: string]>} */
const CHANNELS = {
  slack: ["url", "Secret with the webhook's URL", "slack-ops"],
  email: ["address", "Address", "ops@example.com"],
  webhook: ["url", "URL", "https://example.com/hooks/carillon"],
  sns: ["topic_arn", "Topic", "arn:aws:sns:…"],
};
/** @type {Body} */
const FRESH = { on: ["run.dead", "run.missed", "job.paused", "run.recovered"], jobs: "", tags: {}, at_most_every: "15m", to: { type: "slack", url: { secret: "" } } };

/** Where the address of Slack's is kept. @param {Body} to */
const keptIn = (to) => (to.url?.parameter === undefined ? "secret" : "parameter");

/** @param {Body} to @returns {string} */
function valueOf(to) {
  const value = to[CHANNELS[to.type]?.[0] ?? ""];
  return (typeof value === "object" ? value?.[keptIn(to)] : value) ?? "";
}

/** A channel with another type or value. @param {Body} to @param {string} type @param {string} value */
export const channelOf = (to, type, value) =>
  ({ ...(to.type === type ? to : {}), type, [CHANNELS[type]?.[0] ?? ""]: type === "slack" ? { [keptIn(to)]: value } : value });

/** @param {Body} to */
export const channelText = (to) => `${to.type} ${valueOf(to)}`;

/** @param {{ params: Record<string, string> }} props */
export default function NotificationPage({ params }) {
  const name = params.name ?? "";
  const isNew = name === "new";
  const load = useLoad(async () => (isNew ? { body: null, etag: null } : api.tagged("/notifications/{name}", { name })), [name]);
  return html`<${Loaded} of=${load}>
    ${(/** @type {{ body: Notification | null, etag: string | null }} */ { body, etag }) => html`<${Form} key=${`${name} ${etag}`} found=${body} etag=${etag} again=${load.again} />`}
  <//>`;
}

/** @param {{ found: Notification | null, etag: string | null, again: () => Promise<void> }} props */
function Form({ found, etag, again }) {
  const [name, setName] = useState(found?.name ?? "");
  const [body, setBody] = useState(/** @type {Body} */ (found ?? FRESH));
  const [tags, setTags] = useState(tagsText.show(body.tags));
  const [errors, setErrors] = useState(/** @type {import("../lib/api.js").FieldProblem[]} */ ([]));
  const { on, jobs, at_most_every, to } = body;
  const [member, label, hint] = /** @type {[string, string, string]} */ (CHANNELS[to.type] ?? CHANNELS.webhook);
  /** @param {Body} changes */
  const put = (changes) => setBody({ ...body, ...changes });
  const save = async () => {
    const sent = { on, jobs, at_most_every, to, tags: tagsText.read(tags) ?? {} };
    try {
      /** @type {Record<string, string>} */
      const headers = etag ? { "If-Match": etag } : { "If-None-Match": "*" };
      await api.put("/notifications/{name}", { name }, sent, { headers });
      tell("Saved: it counts within seconds");
      if (found) await again();
      else go(`/notifications/${name}`);
    } catch (error) {
      const { title, detail, errors: told } = /** @type {Problem} */ (error);
      setErrors(told ?? []);
      if (!told?.length) tell(title, detail, true);
    }
  };
  const test = async () => {
    await attempt("Sent: look at the channel", () => api.post("/notifications/{name}/test", { name }));
    setTimeout(again, 2000);
  };
  const remove = async () => {
    if (!(await confirm({ title: `Delete ${name}?`, yes: "Delete", isDangerous: true, body: html`<p>Nobody is told by it any more.</p>` }))) return;
    if ((await attempt("Deleted", () => api.delete("/notifications/{name}", { name }))) !== undefined) go("/notifications");
  };
  const last = found?.last_delivery;
  return html`
    <${Head} title=${found?.name ?? "New notification"} back=${{ href: href("/notifications"), words: "Notifications" }}
      sub=${last && html`<span>last message: <${Status} of=${last.status} /> <${Time} at=${last.at} /></span>`}>
      <${Writing} role="admin">
        ${found && html`<button type="button" onClick=${remove}>Delete</button><button type="button" onClick=${test}>Send a test</button>`}
        <button type="button" class="primary" onClick=${save}>Save</button>
      <//>
    <//>
    ${found?.is_dead && html`<${Callout} tone="bad" title="The channel does not take messages">${last?.error_message ?? last?.error_kind}<//>`}
    <div class="card"><div class="body fields three">
      ${!found && html`<${Field} label="Name" name="name" value=${name} set=${setName} errors=${errors} hint="small letters, digits, dash" placeholder="ops" />`}
      <${Field} label="Channel" name="to.type" of=${[["slack", "Slack"], ["email", "E-mail"], ["webhook", "Webhook"], ["sns", "SNS topic"]]} value=${to.type} set=${(/** @type {string} */ type) => put({ to: channelOf(to, type, "") })} />
      <${Field} label=${keptIn(to) === "parameter" ? label.replace("Secret", "Parameter") : label} name=${`to.${to.type === "slack" ? "url" : member}`} value=${valueOf(to)} set=${(/** @type {string} */ value) => put({ to: channelOf(to, to.type, value) })} placeholder=${hint} errors=${errors} />
      <${Field} label="At most one message every" name="at_most_every" value=${at_most_every} set=${(/** @type {string} */ value) => put({ at_most_every: value })} errors=${errors} hint="later ones come in one digest" />
      <${Field} label="Jobs" name="jobs" value=${jobs} set=${(/** @type {string} */ value) => put({ jobs: value })} errors=${errors} placeholder="all" hint="a name, or the beginning of names and *" />
      <${Field} label="Tags" name="tags" value=${tags} set=${setTags} errors=${errors} placeholder="team=billing" hint="all of them, with commas between" />
      <fieldset class="full"><legend>Tell when</legend>
        ${EVENTS.map(([event, words]) => html`<label class="tick" key=${event}><input type="checkbox" checked=${on.includes(event)}
          onChange=${() => put({ on: on.includes(event) ? on.filter((/** @type {string} */ each) => each !== event) : [...on, event] })} />${words} <span class="quiet">${event}</span></label>`)}
        ${errors.filter(({ field }) => field.startsWith("on")).map(({ message }) => html`<p class="error" role="alert">${message}</p>`)}
      </fieldset>
    </div></div>
  `;
}
