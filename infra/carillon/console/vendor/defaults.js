// @ts-check
// `make vendor` writes this file: a job's settings, each with its default.

/** @type {Record<string, any>} */
export const DEFAULTS = {
  "after": null,
  "calendar": null,
  "catch_up": "latest",
  "concurrency": null,
  "description": null,
  "dst": null,
  "end_at": null,
  "events": [],
  "except": null,
  "expect_within": null,
  "grace": null,
  "initial_state": "active",
  "max_runs": null,
  "name": null,
  "on_complete": "keep",
  "on_failure": null,
  "on_success": null,
  "overlap": "allow",
  "parent": null,
  "pause_after_failures": null,
  "payload": null,
  "priority": "normal",
  "rate": null,
  "result": "beginning",
  "retry": {
    "backoff": {
      "base_seconds": 2,
      "cap_seconds": 3600,
      "factor": 2.0,
      "type": "exponential"
    },
    "max_attempts": 3,
    "retry_on": []
  },
  "schedule": null,
  "start_at": null,
  "tags": {},
  "target": null,
  "template": false,
  "timeout_seconds": null,
  "timezone": "UTC",
  "tolerance": null,
  "window": null
};
