import { hash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import {
  type Digest,
  type JsonMember,
  type Lineage,
  type LosslessJson,
  maxNesting,
  PaddockError,
  parseLossless,
  type SamplingParams,
  scanMembers,
  stringifyLossless,
} from '../../../core/index.ts'
import { askedSampling, type LooseObject } from '../../session/sampling.ts'
import { readLineage } from './lineage.ts'
import { type MessagesText, Turns } from './turns.ts'

/** A chat request, read. The bytes are the truth; the parsed view is for reading only. */
export interface ChatRequest {
  /** Empty once nobody needs them any more. */
  bytes: Buffer
  readonly body: LooseObject
  /** Where the top level's members lie in the bytes, and where it ends. */
  readonly scanned: { readonly members: JsonMember[]; readonly end: number }
  readonly streamed: boolean
  /** The client asked for the usage chunk of a stream. */
  readonly wantsUsage: boolean
  readonly wantsLogprobs: boolean
  readonly topLogprobs: number | null
  readonly hasTools: boolean
  readonly model: string | null
  readonly messages: readonly unknown[]
  readonly turns: Turns
  readonly asked: SamplingParams
  readonly lineage: Lineage
  readonly digest: Digest
}

/** A request of OpenAI's routes: what all of them have. */
interface ReadMembers extends Pick<ChatRequest, 'body' | 'scanned' | 'model' | 'streamed' | 'wantsUsage'> {
  readonly text: string
}

/** Reads the members of a request. Throws `BODY_INVALID_JSON`, `BODY_INVALID_SHAPE`. */
export function readMembers(bytes: Buffer): ReadMembers {
  if (!isUtf8(bytes)) throw new PaddockError('BODY_INVALID_JSON', 'The body is not valid UTF-8.')
  const text = bytes.toString('utf8')
  const body = parseObject(text)
  const nesting = { deepest: 0 }
  const scanned = scanMembers(bytes, 0, nesting)
  // The body itself is one more. Also guards everything below that recurses.
  if (nesting.deepest + 1 > maxNesting) {
    throw new PaddockError('BODY_INVALID_JSON', `The body is nested more than ${maxNesting} deep.`)
  }
  const model = body['model']
  if (model !== undefined && typeof model !== 'string') throw shape('model', 'a string')
  const stream = body['stream'] ?? false
  if (typeof stream !== 'boolean') throw shape('stream', 'true or false')
  const n = body['n'] ?? 1
  if (typeof n !== 'number' || !Number.isInteger(n) || n < 1) throw shape('n', 'an integer of at least 1')
  const options = body['stream_options']
  const wantsUsage = stream && isObject(options) && options['include_usage'] === true
  return { text, body, scanned, model: model ?? null, streamed: stream, wantsUsage }
}

/**
 * Reads a chat completion request (OpenAI API reference, "Create chat completion").
 * Throws `BODY_INVALID_JSON`, `BODY_INVALID_SHAPE`.
 */
export function readChatRequest(bytes: Buffer, headers: IncomingHttpHeaders): ChatRequest {
  const { text, body, scanned, model, streamed, wantsUsage } = readMembers(bytes)
  const { members } = scanned
  const messages = body['messages']
  if (!Array.isArray(messages) || messages.length === 0) throw shape('messages', 'a list with at least one message')
  const tools = body['tools']
  const toolsMember = tools === undefined ? null : memberOf(members, 'tools')
  const topLogprobs = body['top_logprobs']
  return {
    bytes,
    body,
    scanned,
    streamed,
    wantsUsage,
    wantsLogprobs: body['logprobs'] === true,
    topLogprobs: typeof topLogprobs === 'number' ? topLogprobs : null,
    hasTools: Array.isArray(tools) && tools.length > 0,
    model,
    messages,
    turns: new Turns(messages, textOf(bytes, members)),
    asked: askedSampling(body),
    lineage: readLineage(
      headers,
      body,
      toolsMember === null ? null : bytes.subarray(toolsMember.valueStart, toolsMember.valueEnd),
    ),
    digest: requestDigest(bytes, text.includes('"cache_control"'), members),
  }
}

/** Of duplicates the last one counts, as it does for the parser. */
function memberOf(members: readonly JsonMember[], name: string): JsonMember | null {
  for (let at = members.length - 1; at >= 0; at -= 1) {
    const member = members[at]
    if (member?.key === name) return member
  }
  return null
}

function textOf(bytes: Buffer, members: readonly JsonMember[]): MessagesText | null {
  const member = memberOf(members, 'messages')
  return member === null ? null : { bytes, start: member.valueStart, end: member.valueEnd }
}

/** Members that do not make a request another one: how the answer travels, and what clients vary on a retry. */
const ignored = new Set(['stream', 'stream_options', 'metadata', 'user', 'cache_control', 'prompt_cache_key'])

/** What a retry repeats (invariant I6). Key order of the top level and white space around values do not count. */
export function requestDigest(bytes: Buffer, marked: boolean, members: readonly JsonMember[]): Digest {
  if (marked) return digestWithoutMarks(bytes, members)
  const named = inOrder(members)
  let size = 0
  // A decoded key has no more bytes than what stands between its quotes.
  for (const { keyStart, keyEnd, valueStart, valueEnd } of named) size += keyEnd - keyStart + valueEnd - valueStart
  const text = Buffer.allocUnsafe(size)
  let at = 0
  for (const { key, keyStart, keyEnd, valueStart, valueEnd } of named) {
    // As long as its text: ASCII without escapes.
    const plain = keyEnd - keyStart - 2 === key.length
    at += plain ? copyTo(text, at, bytes, keyStart + 1, keyEnd - 1) : text.write(key, at)
    text[at] = 0
    at += 1
    at += copyTo(text, at, bytes, valueStart, valueEnd)
    text[at] = 0
    at += 1
  }
  // In one call: each update of a digest costs more than a copy of what such requests hold.
  return hash('sha256', at === size ? text : text.subarray(0, at))
}

/** Gives how many bytes it copied. */
function copyTo(text: Buffer, at: number, bytes: Buffer, start: number, end: number): number {
  const size = end - start
  if (size > steppedBytes) return bytes.copy(text, at, start, end)
  for (let i = 0; i < size; i += 1) text[at + i] = bytes[start + i] ?? 0
  return size
}

/** Copying them natively costs more than one by one. */
const steppedBytes = 48

/** The same where values may hold cache marks, which clients move from one request to the next. */
function digestWithoutMarks(bytes: Buffer, members: readonly JsonMember[]): Digest {
  const parts: Uint8Array[] = []
  for (const { key, valueStart, valueEnd } of inOrder(members)) {
    const value = bytes.subarray(valueStart, valueEnd)
    parts.push(Buffer.from(`${key}\u0000`))
    if (value.includes('"cache_control"')) {
      parts.push(Buffer.from(stringifyLossless(withoutCacheMarks(parseLossless(value.toString())))))
    } else parts.push(value)
    parts.push(nul)
  }
  return hash('sha256', Buffer.concat(parts))
}

/** The members that count, by name; of duplicates the last. */
function inOrder(members: readonly JsonMember[]): readonly JsonMember[] {
  if (members.length > fewMembers) {
    const last = new Map(members.map((member) => [member.key, member]))
    return [...last.values()].filter(({ key }) => !ignored.has(key)).sort((a, b) => (a.key < b.key ? -1 : 1))
  }
  const named: JsonMember[] = []
  for (const member of members) {
    if (ignored.has(member.key)) continue
    // Few members: each goes to its place among those before it.
    let place = named.length
    while (place > 0 && (named[place - 1]?.key ?? '') > member.key) place -= 1
    if (named[place - 1]?.key === member.key) {
      named[place - 1] = member
      continue
    }
    for (let at = named.length; at > place; at -= 1) named[at] = named[at - 1] ?? member
    named[place] = member
  }
  return named
}

/** So many are put in order one by one; a body that has more is no usual one. */
const fewMembers = 32

const nul = Buffer.of(0)

function withoutCacheMarks(value: LosslessJson): LosslessJson {
  if (value.kind === 'array') return { kind: 'array', items: value.items.map(withoutCacheMarks) }
  if (value.kind !== 'object') return value
  const members = value.members
    .filter((member) => member.key !== 'cache_control')
    .map((member) => ({ ...member, value: withoutCacheMarks(member.value) }))
  return { kind: 'object', members }
}

function parseObject(text: string): LooseObject {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause)
    throw new PaddockError('BODY_INVALID_JSON', `The body is not valid JSON: ${detail.slice(0, 120)}.`, { cause })
  }
  if (!isObject(parsed)) throw new PaddockError('BODY_INVALID_SHAPE', 'The body is not a JSON object.')
  return parsed
}

function isObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function shape(field: string, expected: string): PaddockError {
  return new PaddockError('BODY_INVALID_SHAPE', `\`${field}\` must be ${expected}.`, { data: { field } })
}
