/** What a call is to its rollout. Exports act on the class: by default only `main` and `subagent` are trained. */
export type CallClass =
  | 'main'
  | 'subagent'
  | 'compaction'
  | 'title'
  | 'count'
  | 'probe'
  | 'judge'
  | BesideClass
  | 'other'

/** Calls beside the conversation: recorded, never gone on with and never trained. */
export type BesideClass = 'completion' | 'embedding'

export function isBeside(callClass: CallClass): callClass is BesideClass {
  return callClass === 'completion' || callClass === 'embedding'
}

/** Whether an agent that was answered so can have worked: not by a title for a list, or by a look at whether its key has quota left. */
export function isWork(callClass: CallClass): boolean {
  return !isBeside(callClass) && callClass !== 'title' && callClass !== 'probe' && callClass !== 'count'
}

/**
 * What is known of a call's place in the harness's own structure, extracted by the proxy from headers and body.
 * `trajectory/classify` sees only this, never HTTP.
 */
export interface Lineage {
  /** The harness's own session or thread id, if it sends one. */
  readonly nativeSession: string | null
  /** The harness's agent or sub-agent id. */
  readonly nativeAgent: string | null
  readonly nativeParent: string | null
  /** What the harness says the request is for (`compact`, `review`, …). */
  readonly requestKind: string | null
  /** SHA-256 over the offered tool names and schemas, null without tools. */
  readonly toolsDigest: string | null
  readonly toolCount: number
  /** SHA-256 of the leading system text, null without one. */
  readonly systemDigest: string | null
  /** Program name and version of the client as it names itself. */
  readonly userAgent: string | null
  /** The model name the client asked for. */
  readonly modelAsked: string | null
  /** Retry count that the client's SDK declares, null when it declares none. */
  readonly retryCount: number | null
  readonly idempotencyKey: string | null
}
