// @ts-check
// Who asks: on loopback the server of `carillon console`, to which the tab shows a key; in the stack a person with a
// token. Neither ever stands in the address or in storage that outlives the tab; the token in none at all.

const KEY = "carillon-key";
const TEAM = "carillon-team";
const root = document.documentElement.dataset;
/** The API's address, without a slash at its end. */
export const BASE = new URL(root.api || ".", document.baseURI).href.replace(/\/$/, "");

/** @type {() => Record<string, string>} */
let headers = () => ({});
/** @type {() => Promise<boolean>} */
let another = async () => false;

/** The team that requests act for, "" for the person alone; of this tab. */
export const team = () => sessionStorage.getItem(TEAM) ?? "";
/** Act for another one: nothing that is shown stays. @param {string} name */
export function actFor(name) {
  sessionStorage.setItem(TEAM, name);
  location.reload();
}
export const authorize = () => ({ ...headers(), ...(team() && { "Carillon-Team": team() }) });
/** Get another token where that can be; false where the person has to sign in. */
export const renew = () => another();
export const isReadOnly = root.readOnly === "true";

const ROLES = ["viewer", "editor", "admin"];
/** The role in the team; undefined until the deployment has told it. @type {string | null | undefined} */
let role;
/** Whoever calls it renders the page anew. @param {string | null | undefined} told */
export const setRole = (told) => void (role = told);
/** Whether to offer what takes a role. All is offered until the role is known: the API refuses what it does not allow. */
export const may = (needed = "editor") => !isReadOnly && (role === undefined || ROLES.indexOf(role ?? "") >= ROLES.indexOf(needed));

/** Take the key, and the team that the command acts for, off the address, before anything else can read it. */
function takeKey() {
  const given = new URLSearchParams(location.hash.slice(1));
  const key = given.get("key");
  if (key) {
    sessionStorage.setItem(KEY, key);
    sessionStorage.setItem(TEAM, given.get("team") ?? "");
    history.replaceState(null, "", `#${given.get("to") ?? "/jobs"}`);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

/** Begin; resolves when requests can be sent, and never where the page leaves for a sign-in. */
export async function begin() {
  if (root.signIn === "key") {
    const key = takeKey();
    headers = () => ({ "Carillon-Console": key });
    return { signOut: null };
  }
  const { signedIn } = await import("./sign_in.js");
  const session = await signedIn(BASE);
  headers = () => ({ Authorization: `Bearer ${session.token()}` });
  another = session.renew;
  return { signOut: /** @type {(() => void) | null} */ (session.signOut) };
}
