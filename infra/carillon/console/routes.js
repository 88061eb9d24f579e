// @ts-check
// The pages. `key` is the one behind `g`, of pages that the bar names.

/**
 * @typedef {object} Route
 * @property {string} path
 * @property {string} title
 * @property {string} [key]
 * @property {boolean} [operators]
 * @property {string} [badge] the member of `GET /status` that is shown beside the title
 * @property {() => Promise<{ default: any }>} load
 */

/** @type {Route[]} */
export const ROUTES = [
  { path: "/jobs", title: "Jobs", key: "j", load: () => import("./pages/jobs.js") },
  { path: "/new", title: "New job", load: () => import("./pages/edit.js") },
  { path: "/jobs/:job_id", title: "Job", load: () => import("./pages/job.js") },
  { path: "/jobs/:job_id/edit", title: "Edit job", load: () => import("./pages/edit.js") },
  { path: "/jobs/:job_id/runs/:run_id", title: "Run", load: () => import("./pages/run.js") },
  { path: "/activity", title: "Activity", key: "a", load: () => import("./pages/activity.js") },
  { path: "/forecast", title: "Forecast", key: "f", load: () => import("./pages/forecast.js") },
  { path: "/dead-letters", title: "Dead letters", key: "d", badge: "dead_letters", load: () => import("./pages/dead_letters.js") },
  { path: "/calendars", title: "Calendars", key: "c", load: () => import("./pages/calendars.js") },
  { path: "/calendars/:name", title: "Calendar", load: () => import("./pages/calendar.js") },
  { path: "/operations", title: "Operations", key: "o", load: () => import("./pages/operations.js") },
  { path: "/notifications", title: "Notifications", key: "m", load: () => import("./pages/notifications.js") },
  { path: "/notifications/:name", title: "Notification", load: () => import("./pages/notification.js") },
  { path: "/quotas", title: "Quotas", key: "q", load: () => import("./pages/quotas.js") },
  { path: "/segments", title: "Segments", key: "s", operators: true, load: () => import("./pages/segments.js") },
];
