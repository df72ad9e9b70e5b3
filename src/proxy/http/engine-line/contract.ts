/** A request to an engine: always a POST of JSON. */
export interface LineAsk {
  /** Under the engine's root, for example `/v1/chat/completions`. */
  readonly path: string
  /** What differs from call to call; lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** How an exchange broke. */
export interface LineBreak {
  readonly cause: Error
  /**
   * `unreachable`: nobody listens, the request was not even sent. `died`: the connection closed before the answer was complete.
   * `malformed`: what came is not HTTP as it must be, and none of it is believed.
   */
  readonly kind: 'unreachable' | 'died' | 'malformed'
}

/** What comes back, in order. Exactly one of `end` and `broke` is the last; nothing comes after `abort`. */
export interface LineSink {
  /** Once, of the final answer: 1xx answers are passed over. `headers` may lack the date and the length. */
  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  /** Body bytes without framing; the receiver may keep them. */
  data(bytes: Buffer): void
  end(): void
  broke(broke: LineBreak): void
}

/** An exchange that is under way. */
export interface LineExchange {
  pause(): void
  resume(): void
  /** Cuts the connection; the sink is told nothing more. */
  abort(): void
}

/** The connections to one engine. None is ever waited for: an exchange without a free one opens its own. */
export interface EngineLine {
  /** `fresh`: over a connection that was never used before. */
  ask(ask: LineAsk, sink: LineSink, fresh: boolean): LineExchange
  /** Open connections, and exchanges that wait for one. */
  stats(): { readonly connections: number; readonly pending: number }
  close(): Promise<void>
}
