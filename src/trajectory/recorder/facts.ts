/**
 * The facts of intents as JSON text. From call to call of a session most of them stay as they are: what does is not made
 * into text again.
 */
import type { CallIntent } from '../contract/index.ts'

/** The facts of an intent that are stored as JSON text. */
export type IntentFacts = Omit<CallIntent, 'id' | 'sessionId' | 'seq' | 'startedAt' | 'requestDigest' | 'body'>

type StableFacts = Omit<IntentFacts, 'headers' | 'retryOf'>

/** The facts of an intent with their text. */
export interface FactsText {
  readonly stable: StableFacts
  readonly headers: IntentFacts['headers']
  readonly retryOf: IntentFacts['retryOf']
  /** Bytes of the text up to the headers, which stand behind all that is stable. */
  readonly stableBytes: number
  /** In memory of its own: it is kept as a base, and a pool would be kept with it. */
  readonly text: Buffer
}

/** The text of an intent's facts; `last` is an earlier one of the session, and given back where no fact differs. */
export function intentFacts(intent: CallIntent, last: FactsText | null): FactsText {
  const { headers, retryOf } = intent
  if (last === null || !hasSameStable(intent, last.stable)) {
    const stable = stableOf(intent)
    const front = JSON.stringify(stable).slice(0, -1)
    const stableBytes = Buffer.byteLength(front)
    return { stable, headers, retryOf, stableBytes, text: textOf(front, stableBytes, intent) }
  }
  if (retryOf === last.retryOf && isSame(headers, last.headers)) return last
  const { stableBytes } = last
  return { stable: last.stable, headers, retryOf, stableBytes, text: textOf(last.text, stableBytes, intent) }
}

/** What of an intent is not stable: it has columns of its own, or stands behind what is. Every other member is. */
const apart: Readonly<Record<Exclude<keyof CallIntent, keyof StableFacts>, true>> = {
  id: true,
  sessionId: true,
  seq: true,
  startedAt: true,
  requestDigest: true,
  body: true,
  headers: true,
  retryOf: true,
}

function stableOf(intent: CallIntent): StableFacts {
  // What is left is what the type says, and no list can forget a member.
  return Object.fromEntries(Object.entries(intent).filter(([name]) => !(name in apart))) as unknown as StableFacts
}

/** Whether {@link stableOf} would be the same as this. */
function hasSameStable(intent: CallIntent, stable: StableFacts): boolean {
  // The members of both are read by name, as they stand there.
  const [one, other] = [intent, stable] as unknown as Readonly<Record<string, unknown>>[]
  let members = 0
  for (const name in one) {
    if (name in apart) continue
    if (!isSame(one[name], other?.[name])) return false
    members += 1
  }
  for (const _ in other) members -= 1
  return members === 0
}

/** `frontBytes` of the text of what is stable, then the rest. */
function textOf(front: string | Buffer, frontBytes: number, { headers, retryOf }: CallIntent): Buffer {
  const rest = `,"headers":${JSON.stringify(headers)},"retryOf":${JSON.stringify(retryOf)}}`
  const text = Buffer.allocUnsafeSlow(frontBytes + Buffer.byteLength(rest))
  if (typeof front === 'string') text.write(front)
  else front.copy(text, 0, 0, frontBytes)
  text.write(rest, frontBytes)
  return text
}

/** True where both have the same JSON, but for the order of members. False says nothing. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (!isObject(one) || !isObject(other) || Array.isArray(one) !== Array.isArray(other)) return false
  let members = 0
  for (const name in one) {
    const value = one[name]
    // A member that is not there is undefined too.
    if (value === undefined || !isSame(value, other[name])) return false
    members += 1
  }
  for (const _ in other) members -= 1
  return members === 0
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
