import { editObject, PaddockError, scanElements, scanMembers } from '../../core/index.ts'
import type { CallIntent } from '../../trajectory/index.ts'
import type { DialectRequest } from '../dialects/contract.ts'
import { withoutVolatile } from './difference.ts'

/** How a resumed harness's requests come to be those of its parent's conversation. */
export interface GraftOrder {
  /** What its harness was given as its next prompt; ASCII, as in no other text. */
  readonly marker: string
  /** Keeps what a harness really sent, where something else was read. */
  readonly keep: (bytes: Uint8Array) => Promise<string>
}

/** A request of such a harness, as it is read. */
export interface GraftedRequest {
  readonly asked: DialectRequest
  /** What its harness sent, where something else is read; null: nothing else is. */
  readonly received: Buffer | null
  /** What of its past it does not say, of a request of the conversation; null: it says all. */
  readonly lost: GraftLoss | null
}

export interface GraftLoss {
  /** `place`: where its past ends. `results`: what its tools had said when the recorded call was asked. */
  readonly what: 'place' | 'results'
  readonly detail: string
}

/** Where a dialect's request has its conversation, and what beside it the model is shown as its instructions. */
const places: Readonly<Record<string, { readonly list: string; readonly system: string | null }>> = {
  chat: { list: 'messages', system: null },
  messages: { list: 'messages', system: 'system' },
  responses: { list: 'input', system: 'instructions' },
  gemini: { list: 'contents', system: 'systemInstruction' },
}

/**
 * What a harness that resumed its own session says of the past gives way to what was recorded: in each of its requests everything up
 * to and including the marker becomes the recorded call's messages, and its instructions those of then. What follows is its own.
 */
export class Graft {
  readonly marker: string
  readonly keep: GraftOrder['keep']
  readonly #list: readonly Buffer[]
  readonly #system: string | null
  readonly #places: { readonly list: string; readonly system: string | null }

  /** `at` is the recorded call. Throws `FORK_REFUSED` for a dialect that has no such list. */
  constructor({ marker, keep }: GraftOrder, at: Pick<CallIntent, 'dialect' | 'body'>) {
    this.marker = marker
    this.keep = keep
    const found = places[at.dialect]
    const body = Buffer.from(at.body)
    const list = found === undefined ? null : listOf(body, found.list)
    if (found === undefined || list === null) {
      throw new PaddockError('FORK_REFUSED', `There is no fork there: ${at.dialect} has no list of messages.`)
    }
    this.#places = found
    this.#list = list.map(({ start, end }) => body.subarray(start, end))
    this.#system = found.system === null ? null : memberOf(body, found.system)
  }

  /**
   * Whether a call is of the conversation is told by the request as it was sent: by its own instructions and tools. What was given as the
   * agent's prompt and offers tools is the agent, whatever the day has made of those.
   */
  read(
    body: Buffer,
    o: { readonly read: (body: Buffer) => DialectRequest; readonly isMain: (asked: DialectRequest) => boolean },
  ): GraftedRequest {
    const asked = o.read(body)
    const isMarked = body.includes(this.marker)
    if (o.isMain(asked) || (isMarked && asked.chat.hasTools)) {
      const served = this.#into(body)
      if (served === null) {
        const detail = 'the place at which its session was resumed is in none of its messages any more'
        return { asked, received: null, lost: { what: 'place', detail } }
      }
      return { asked: o.read(served.body), received: body, lost: served.lost }
    }
    // Beside the conversation what stands for a prompt says nothing.
    if (!isMarked) return { asked, received: null, lost: null }
    return { asked: o.read(this.#without(body)), received: body, lost: null }
  }

  /** Null: the marker is in none of its messages. */
  #into(body: Buffer): { readonly body: Buffer; readonly lost: GraftLoss | null } | null {
    if (!body.includes(this.marker)) return null
    const own = listOf(body, this.#places.list) ?? []
    const at = own.findIndex(({ start, end }) => body.subarray(start, end).includes(this.marker))
    if (at === -1) return null
    const rest = own.slice(at + 1).map(({ start, end }) => body.subarray(start, end))
    const list = `[${[...this.#list, ...rest].map((one) => one.toString()).join(',')}]`
    const { list: name, system } = this.#places
    const set = { [name]: list, ...(system === null || this.#system === null ? {} : { [system]: this.#system }) }
    // A program that resumes before it had written everything down tells of results that it never got.
    const missing = rest.length > 0 ? [] : this.#missingIn(own.slice(0, at + 1).map((of) => valueOf(body, of)))
    const detail = `the session that it resumed does not hold the results of its tools ${missing.join(', ')}`
    return { body: editObject(body, { set }), lost: missing.length === 0 ? null : { what: 'results', detail } }
  }

  /** Ids of those results that were new in the recorded call, and that are not in a resumed past as they were. */
  #missingIn(past: readonly unknown[]): readonly string[] {
    const recorded = this.#list.map((bytes): unknown => JSON.parse(bytes.toString()))
    const before = recorded.findLastIndex((item) => resultsIn(item).length === 0)
    const told = new Map(past.flatMap(resultsIn))
    return recorded
      .slice(before + 1)
      .flatMap(resultsIn)
      .filter(([id, said]) => told.get(id) !== said)
      .map(([id]) => id)
  }

  #without(body: Buffer): Buffer {
    return Buffer.from(body.toString().replaceAll(this.marker, ''))
  }
}

function memberOf(body: Buffer, name: string): string | null {
  const found = scanMembers(body).members.findLast(({ key }) => key === name)
  return found === undefined ? null : body.subarray(found.valueStart, found.valueEnd).toString()
}

function listOf(body: Buffer, name: string): ReturnType<typeof scanElements> | null {
  const found = scanMembers(body).members.findLast(({ key }) => key === name)
  return found === undefined || body[found.valueStart] !== 0x5b ? null : scanElements(body, found.valueStart)
}

function valueOf(body: Buffer, { start, end }: { readonly start: number; readonly end: number }): unknown {
  return JSON.parse(body.subarray(start, end).toString())
}

/** What tools said, by the id of their call. */
function resultsIn(value: unknown): readonly (readonly [id: string, said: string])[] {
  if (Array.isArray(value)) return value.flatMap(resultsIn)
  if (typeof value !== 'object' || value === null) return []
  const { tool_call_id: chat, tool_use_id: messages, call_id: responses, content, output } = value as ToolResult
  const id = chat ?? messages ?? responses
  const said = content ?? output
  if (typeof id === 'string' && said !== undefined) return [[id, JSON.stringify(withoutVolatile(said))]]
  return Array.isArray(content) ? resultsIn(content) : []
}

/** As the chat, messages and responses dialects have it. */
interface ToolResult {
  readonly tool_call_id?: unknown
  readonly tool_use_id?: unknown
  readonly call_id?: unknown
  readonly content?: unknown
  readonly output?: unknown
}
