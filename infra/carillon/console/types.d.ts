// Names for the types of the API, which `make check` makes of its OpenAPI description.
import type { components, paths as described } from "./types/api";

type Schemas = components["schemas"];
export type Job = Schemas["JobForm"];
export type JobReport = Schemas["JobReport"];
export type JobSpec = Schemas["JobSpec"];
export type Run = Schemas["RunForm"];
export type Change = Schemas["RecordedChange"];
export type RunDetail = Schemas["RunDetail"];
export type Preview = Schemas["PreviewForm"];
export type PreviewBody = Schemas["PreviewBody"];
export type Changed = Schemas["ChangedForm"];
export type Occurrence = Schemas["OccurrenceForm"];
export type RunStatus = Schemas["RunStatus"];
export type JobState = Schemas["JobState"];
export type Warning = Schemas["WarningForm"];
export type Ended = Schemas["RunSummary"];
export type Bucket = Schemas["BucketForm"];
export type Operation = Schemas["OperationForm"];
export type Forecast = Schemas["ForecastForm"];
export type Calendar = Schemas["CalendarForm"];
export type InMinute = Schemas["MinuteJobForm"];
export type Notification = Schemas["NotificationForm"];
export type Segment = Schemas["SegmentForm"];
export type Quotas = Schemas["QuotasForm"];
export type Quota = Schemas["QuotaForm"];

export type paths = described;

type Json<R> = R extends { content: { "application/json": infer B } } ? B : void;
type Success<R> =
  R extends { 200: infer A } ? Json<A> : R extends { 201: infer A } ? Json<A> : R extends { 202: infer A } ? Json<A> : void;
/** The body with which a request succeeds. */
export type Answer<P extends keyof paths, M extends string> =
  M extends keyof paths[P] ? (paths[P][M] extends { responses: infer R } ? Success<R> : never) : never;

/** A run as lists of jobs have it. */
export interface Seen {
  run_id: string;
  kind: string;
  status: RunStatus;
  fire_at: string;
  lag_seconds: number | null;
  duration_seconds: number | null;
  error_kind: string | null;
}
/** A row of the list of jobs: `GET /jobs?view=summary`. */
export type JobRow = Pick<
  Job,
  "job_id" | "name" | "state" | "resume_at" | "note" | "schedule" | "sentence" | "timezone" | "parent" | "tags" | "managed_by" | "next_fire_at"
> & { last_run?: Seen | null; recent?: Seen[] };
