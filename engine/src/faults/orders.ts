import { EngineError, validationError } from '../errors.ts'
import { JsonNumber } from '../json/lossless.ts'
import { readCount, readNumber, readObject, readText } from '../json/read.ts'
import type { JsonObject } from '../json/lossless.ts'

/** Where a broken stream breaks. `before_headers` also fits answers that are not streamed. */
export const deathPlaces = [
  'before_headers',
  'after_headers',
  'mid_token',
  'before_finish',
  'before_usage',
  'before_done',
] as const
export type DeathPlace = (typeof deathPlaces)[number]

/** One way to misbehave. Token numbers count output tokens of a choice from 1. */
export type Fault =
  /** Answer tokens that the tokenizer would never produce for that text. */
  | { readonly kind: 'non_canonical' }
  /** `token_ids` missing in every n-th chunk of a stream (vLLM issue 27482: ids lost under a tool parser). */
  | { readonly kind: 'drop_token_ids'; readonly every: number }
  /** A logprob that is no number (bare `NaN`, which strict JSON readers refuse), null, or the floor -9999. */
  | { readonly kind: 'bad_logprob'; readonly value: 'NaN' | 'null' | '-9999.0'; readonly token: number }
  /** Logprobs were asked for and none come. */
  | { readonly kind: 'null_logprobs' }
  | {
      readonly kind: 'stall'
      readonly at: 'before_first_byte' | 'mid_stream'
      readonly seconds: number
      readonly token: number
    }
  | { readonly kind: 'die'; readonly at: DeathPlace; readonly token: number }
  | { readonly kind: 'http_error'; readonly status: number; readonly retryAfterSeconds: number | undefined }
  /** New weights arrive after a token; `version` names them, else the next number. */
  | { readonly kind: 'weight_update'; readonly token: number; readonly version: string | undefined }
  /** Usage counts differ from the truth by `by`. */
  | { readonly kind: 'wrong_usage'; readonly by: number }
  /** The engine keeps only the last tokens of the prompt and says so only through its ids and counts. */
  | { readonly kind: 'truncate_prompt'; readonly keep: number }
  /** A request to turn ids into a message fails. Strikes only such requests, and no other fault does. */
  | { readonly kind: 'derender_fails'; readonly status: number }

export type FaultKind = Fault['kind']

/** A fault with the calls it is meant for. */
export interface FaultOrder {
  readonly fault: Fault
  /** Substring of a session header or field; undefined for any. */
  readonly session: string | undefined
  /** Text that the prompt must contain; undefined for any. */
  readonly instruction: string | undefined
  /** Only the n-th call that matches, from 1; undefined for each. */
  readonly nth: number | undefined
  /** How often it strikes before it is used up; 0 for always. */
  readonly count: number
}

/** Reads an order. Throws a 400 for an unknown kind or place. */
export function readFaultOrder(body: JsonObject): FaultOrder {
  const match = readObject(body, 'match') ?? new Map()
  return {
    fault: readFault(body),
    session: readText(match, 'session'),
    instruction: readText(match, 'instruction'),
    nth: readCount(match, 'nth'),
    count: readCount(body, 'count') ?? 1,
  }
}

function readFault(body: JsonObject): Fault {
  const kind = readText(body, 'kind')
  const token = readCount(body, 'token') ?? 3
  switch (kind) {
    case 'non_canonical':
    case 'null_logprobs':
      return { kind }
    case 'drop_token_ids':
      return { kind, every: Math.max(1, readCount(body, 'every') ?? 3) }
    case 'bad_logprob':
      return { kind, token, value: readBadLogprob(body) }
    case 'stall':
      return {
        kind,
        token,
        at: readText(body, 'at') === 'mid_stream' ? 'mid_stream' : 'before_first_byte',
        seconds: readNumber(body, 'seconds') ?? 60,
      }
    case 'die': {
      const at = deathPlaces.find((place) => place === (readText(body, 'at') ?? 'mid_token'))
      if (at === undefined) throw validationError(`at must be one of ${deathPlaces.join(', ')}`, 'at')
      return { kind, at, token }
    }
    case 'http_error':
      return {
        kind,
        status: readCount(body, 'status') ?? 500,
        retryAfterSeconds: readNumber(body, 'retryAfterSeconds'),
      }
    case 'weight_update':
      return { kind, token, version: readText(body, 'version') }
    case 'wrong_usage':
      return { kind, by: readCount(body, 'by') ?? 7 }
    case 'derender_fails':
      return { kind, status: readCount(body, 'status') ?? 500 }
    case 'truncate_prompt':
      return { kind, keep: readCount(body, 'keep') ?? 64 }
    default:
      throw new EngineError(`unknown fault kind ${kind ?? '(none)'}`, { param: 'kind' })
  }
}

function readBadLogprob(body: JsonObject): 'NaN' | 'null' | '-9999.0' {
  const value = body.get('value')
  if (value === null) return 'null'
  if (value instanceof JsonNumber) return '-9999.0'
  return value === '-9999' || value === '-9999.0' ? '-9999.0' : value === 'null' ? 'null' : 'NaN'
}
