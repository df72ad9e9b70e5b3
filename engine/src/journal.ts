import { closeSync, openSync, writeSync } from 'node:fs'
import type { VersionSpan } from './generation/choice.ts'
import type { Fault } from './faults/orders.ts'

/** Written before the first token: what was asked for. */
export interface IntentLine {
  readonly kind: 'intent'
  readonly requestId: string
  readonly time: string
  readonly wire: string
  readonly route: string
  readonly model: string
  readonly promptTokens: number
}

/** The truth about one generation, written before its last byte leaves. Logprobs are the model's, before any fault. */
export interface GenerationLine {
  readonly kind: 'generation'
  readonly requestId: string
  readonly time: string
  readonly wire: string
  readonly route: string
  readonly model: string
  readonly adapter: string | null
  readonly stream: boolean
  readonly tokenizer: string
  readonly template: string
  readonly weightVersionBefore: string
  readonly weightVersionAfter: string
  readonly promptTokenIds: readonly number[]
  /** SHA-256 of the images behind the placeholders in the prompt, in order. */
  readonly images: readonly string[]
  readonly choices: readonly {
    readonly index: number
    readonly tokenIds: readonly number[]
    readonly logprobs: readonly number[]
    readonly finishReason: string
    readonly stopReason: string | number | null
    readonly weightVersions: readonly VersionSpan[]
    /** Candidates of the script that the sampled tokens still allow. */
    readonly candidates: readonly string[]
  }[]
  readonly logprobsMode: string
  readonly sampling: Readonly<Record<string, unknown>>
  /** What kept its prefix cache apart (`cache_salt`, SGLang `extra_key`); null for none. */
  readonly cacheSalt: string | null
  /** SHA-256 of the instruction whose script was used; null when none matched. */
  readonly script: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly faults: readonly Fault[]
}

/** Written when the connection is done with: how much of the answer left, and how it ended. */
export interface DeliveryLine {
  readonly kind: 'delivery'
  readonly requestId: string
  readonly time: string
  readonly bytes: number
  readonly ended: 'finished' | 'client_closed' | 'died'
}

/** Somebody paused, resumed, aborted, or gave new weights or a new version: what was asked, before it was done. */
export interface OrderLine {
  readonly kind: 'order'
  readonly time: string
  readonly route: string
  readonly weightVersion: string
}

export type JournalLine = IntentLine | GenerationLine | DeliveryLine | OrderLine

/** What the control route can show: enough for a test run, bounded for a bench. */
const KEPT_LINES = 20_000
const KEPT_TOKENS = 4_000_000

/**
 * Append-only record of everything generated. A line is in the file when `append` returns (one `write(2)` per line), so
 * it survives the death of this process. The last lines are kept in memory for the control route.
 */
export class Journal {
  readonly #fd: number | undefined
  readonly #lines: JournalLine[] = []
  #tokens = 0

  /** Without a path lines are kept in memory only. */
  constructor(path: string | undefined) {
    this.#fd = path === undefined ? undefined : openSync(path, 'a')
  }

  append(line: JournalLine): void {
    if (this.#fd !== undefined) writeSync(this.#fd, `${JSON.stringify(line)}\n`)
    this.#lines.push(line)
    this.#tokens += tokensOf(line)
    if (this.#lines.length > KEPT_LINES || this.#tokens > KEPT_TOKENS) this.#forgetOldest()
  }

  /** A tenth at a time, so that a long run does not shift the list at every line. */
  #forgetOldest(): void {
    const gone = this.#lines.splice(0, Math.ceil(this.#lines.length / 10))
    for (const line of gone) this.#tokens -= tokensOf(line)
  }

  /** The kept lines, oldest first. */
  lines(): readonly JournalLine[] {
    return this.#lines
  }

  clear(): void {
    this.#lines.length = 0
    this.#tokens = 0
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
  }
}

function tokensOf(line: JournalLine): number {
  if (line.kind !== 'generation') return 0
  return line.choices.reduce((sum, choice) => sum + choice.tokenIds.length, line.promptTokenIds.length)
}
