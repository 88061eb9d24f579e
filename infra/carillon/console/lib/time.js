// @ts-check
// Instants for people: relative, with the absolute one on hover; in UTC, or the browser's zone.
import { html, useEffect, useState } from "./html.js";
import { preference } from "./store.js";

/** "utc" or "local". */
export const clockFace = preference("clock", "utc");
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** @type {[limit: number, unit: number, name: string][]} */
const STEPS = [[MINUTE, SECOND, "s"], [HOUR, MINUTE, "min"], [2 * DAY, HOUR, "h"], [60 * DAY, DAY, "days"]];

/** @param {string | number | Date} at @param {Intl.DateTimeFormatOptions} options */
const shown = (at, options) =>
  new Intl.DateTimeFormat("en-GB", { ...options, timeZone: clockFace.get() === "utc" ? "UTC" : undefined }).format(
    new Date(at),
  );

/** "Mon 23 Nov 2026, 06:00:00". @param {string | number | Date} at */
export const absolute = (at) =>
  `${shown(at, { weekday: "short", day: "numeric", month: "short", year: "numeric" }).replace(",", "")}, ${clock(at)}`;

/** "06:00:00". @param {string | number | Date} at */
export const clock = (at) => shown(at, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** "06:00". @param {string | number | Date} at */
export const minute = (at) => shown(at, { hour: "2-digit", minute: "2-digit" });

/** "23 Nov". @param {string | number | Date} at */
export const day = (at) => shown(at, { day: "numeric", month: "short" });

/** "Mon 06:00", with the date where it is more than six days away. @param {string | number | Date} at @param {number} [now] */
export function short(at, now = Date.now()) {
  const away = new Date(at).getTime() - now;
  if (Math.abs(away) < 6 * DAY) return shown(at, { weekday: "short", hour: "2-digit", minute: "2-digit" }).replace(",", "");
  const isFar = Math.abs(away) > 300 * DAY;
  return shown(at, { day: "numeric", month: "short", ...(isFar ? { year: "numeric" } : { hour: "2-digit", minute: "2-digit" }) });
}

/** "in 3 min", "2 h ago". @param {string | number | Date} at @param {number} [now] */
export function relative(at, now = Date.now()) {
  const away = new Date(at).getTime() - now;
  const size = Math.abs(away);
  if (size < SECOND) return "now";
  const step = STEPS.find(([limit]) => size < limit);
  if (!step) return day(at) + (size > 300 * DAY ? ` ${shown(at, { year: "numeric" })}` : "");
  const count = Math.floor(size / step[1]);
  const words = `${count} ${step[2] === "days" && count === 1 ? "day" : step[2]}`;
  return away > 0 ? `in ${words}` : `${words} ago`;
}

/** "1.2 s", "3 min 20 s", "2 h 5 min". @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min${pad(Math.floor(seconds % 60), "s")}`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h${pad(Math.floor((seconds % 3600) / 60), "min")}`;
  return `${Math.floor(seconds / 86400)} d${pad(Math.floor((seconds % 86400) / 3600), "h")}`;
}

/** @param {number} count @param {string} unit */
const pad = (count, unit) => (count ? ` ${count} ${unit}` : "");

/** "UTC", or the browser's zone. */
export const zoneName = () => (clockFace.get() === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone);

/**
 * An instant; `as` is one of "relative" (default), "short", "clock", "absolute".
 * @param {{ at: string | null | undefined, as?: "relative" | "short" | "clock" | "absolute" }} props
 */
export function Time({ at, as = "relative" }) {
  clockFace.use();
  const [, setNow] = useState(0);
  const away = at ? Math.abs(Date.now() - new Date(at).getTime()) : Infinity;
  useEffect(() => {
    if (as !== "relative" || away > DAY) return undefined;
    const timer = setInterval(() => setNow(Date.now()), away < 2 * MINUTE ? SECOND : 20 * SECOND);
    return () => clearInterval(timer);
  }, [at, as, away < 2 * MINUTE]);
  if (!at) return html`<span class="quiet">–</span>`;
  const text = { relative, short, clock, absolute }[as](at);
  const hover = as === "absolute" ? relative(at) : `${absolute(at)} ${zoneName()}`;
  return html`<time datetime=${at} title=${hover}>${text}</time>`;
}
