// @ts-check
// Signing in where the stack serves the console: OAuth's authorization code with PKCE (RFC 7636). Tokens are kept in
// memory only: a reload asks the issuer again, which knows the person by its own session.

const KEPT = "carillon-sign-in";
const HERE = location.origin + location.pathname;

/** @param {ArrayBuffer | Uint8Array} bytes */
const base64url = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

/** @typedef {{ client_id: string, authorization_endpoint: string, token_endpoint: string, end_session_endpoint?: string }} Issuer */

/** @param {string} api @returns {Promise<Issuer>} */
async function issuer(api) {
  const told = await (await fetch(`${api}/.well-known/carillon`)).json();
  const base = told.sign_in_url;
  const found = base
    ? { authorization_endpoint: `${base}/oauth2/authorize`, token_endpoint: `${base}/oauth2/token` }
    : await (await fetch(`${told.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`)).json();
  return { ...found, client_id: told.console_client_id };
}

/** @param {Issuer} from @returns {Promise<any>} never */
async function leave({ authorization_endpoint, client_id }) {
  const [state, verifier] = [random(), random()];
  sessionStorage.setItem(KEPT, JSON.stringify({ state, verifier, hash: location.hash }));
  const challenge = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  const query = new URLSearchParams({
    response_type: "code", client_id, redirect_uri: HERE, scope: "openid", state,
    code_challenge: challenge, code_challenge_method: "S256",
  });
  location.assign(`${authorization_endpoint}?${query}`);
  return new Promise(() => {});
}

/** What a sign-in failed by; `status` is 0 where nobody has answered. */
class Failure extends Error {
  /** @param {number} status */
  constructor(status) {
    super(status ? `the sign-in was refused (${status})` : "the issuer does not answer");
    this.status = status;
    this.title = "Not signed in again";
    this.detail = `${this.message}: try again`;
  }
}

/** @param {Issuer} from @param {Record<string, string>} grant */
async function tokens({ token_endpoint, client_id }, grant) {
  const body = new URLSearchParams({ client_id, ...grant });
  const answer = await fetch(token_endpoint, { method: "POST", body }).catch(() => {
    throw new Failure(0);
  });
  if (!answer.ok) throw new Failure(answer.status);
  return answer.json();
}

/** The session; leaves for the issuer where there is none. @param {string} api */
export async function signedIn(api) {
  const from = await issuer(api);
  const given = new URLSearchParams(location.search);
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  sessionStorage.removeItem(KEPT);
  const code = given.get("code");
  if (given.get("error")) throw new Error(given.get("error_description") ?? String(given.get("error")));
  if (!code || !kept || given.get("state") !== kept.state) return leave(from);
  history.replaceState(null, "", location.pathname + kept.hash);
  let held = await tokens(from, { grant_type: "authorization_code", code, redirect_uri: HERE, code_verifier: kept.verifier });
  /** @type {Promise<boolean> | null} */
  let renewing = null;
  const renewed = async () => {
    try {
      held = { ...held, ...(await tokens(from, { grant_type: "refresh_token", refresh_token: held.refresh_token })) };
      return true;
    } catch (error) {
      // Whoever leaves loses what is being written: only where the issuer says that it is over.
      if (error instanceof Failure && ![400, 401].includes(error.status)) throw error;
      return leave(from);
    }
  };
  return {
    token: () => String(held.access_token),
    // Once for all requests that are refused together: a refresh token is good for one exchange.
    renew: () => (renewing ??= renewed().finally(() => (renewing = null))),
    signOut: () => {
      held = {};
      // What is refused meanwhile must not sign in again.
      renewing = new Promise(() => {});
      const end = from.end_session_endpoint ?? new URL("/logout", from.token_endpoint);
      location.assign(`${end}?${new URLSearchParams({ client_id: from.client_id, logout_uri: HERE, post_logout_redirect_uri: HERE })}`);
    },
  };
}
