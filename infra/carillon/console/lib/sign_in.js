// @ts-check
/** @returns {Promise<{ token: () => string, renew: () => Promise<boolean>, signOut: () => void }>} */
export async function signedIn() {
  throw new Error("sign in by `carillon console`");
}
