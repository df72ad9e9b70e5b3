/** What came is not an HTTP/1.1 answer that can be believed. */
export class MalformedReply extends Error {
  override readonly name = 'MalformedReply'
}

/** How the body ends (RFC 9112 §6.3). */
export type BodyFrame =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'close' }

/** The head of an answer, read. */
export interface ReplyHead {
  readonly status: number
  /** Names in lower case; without the date and the length, which are all that changes from one answer to the next. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly frame: BodyFrame
  /** The connection may carry another exchange, for this long without one; milliseconds, 0: it may not. */
  readonly keepMs: number
}

/** An engine sends a dozen fields; a flood of them is no engine. */
const maxFields = 100
/** uvicorn, in front of vLLM and SGLang, closes after 5 s without saying so (`timeout_keep_alive`). */
const defaultKeepMs = 4000
/** Of what a server says itself: closing is a race, so we are first. */
const keepMarginMs = 1000
const longestKeepMs = 600_000

const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Reads the head of an answer to a POST, `text` without the empty line that ends it (RFC 9112 §4 and §5, RFC 9110 §5.5). Strict where
 * readers could disagree about where the answer ends: a length twice, a length beside chunks, any other coding, folded
 * lines and bare line feeds are refused. Throws `MalformedReply`.
 */
export function readReplyHead(text: string): ReplyHead {
  const lines = text.split('\r\n')
  const { code, persistent } = statusOf(lines[0] ?? '')
  const headers = readFields(lines, 1)
  const frame = frameOf(headers, code, persistent)
  delete headers['date']
  delete headers['content-length']
  return { status: code, headers, frame, keepMs: frame.kind === 'close' ? 0 : keepMsOf(headers, persistent) }
}

interface Status {
  readonly code: number
  /** The answer is of HTTP/1.1. */
  readonly persistent: boolean
}

/** The status line that was read last: an engine that works sends no other. */
let lastStatus: { readonly line: string; readonly status: Status } | null = null

/** Throws `MalformedReply`. */
function statusOf(line: string): Status {
  if (lastStatus?.line === line) return lastStatus.status
  const read = statusLine.exec(line)
  if (read === null) throw new MalformedReply('the status line is not of HTTP/1.1')
  const status = { code: Number(read[2]), persistent: read[1] === '1' }
  if (line.length <= maxKnownLength) lastStatus = { line, status }
  return status
}

/** Header or trailer fields, one per line from the line `first` on. Throws `MalformedReply`. */
export function readFields(lines: readonly string[], first = 0): Record<string, string | string[]> {
  if (lines.length - first > maxFields) throw new MalformedReply(`there are more than ${maxFields} header fields`)
  const fields: Record<string, string | string[]> = Object.create(null)
  for (let i = first; i < lines.length; i += 1) {
    const { name, value } = fieldOf(lines[i] ?? '')
    const before = fields[name]
    fields[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
  }
  return fields
}

interface Field {
  /** In lower case. */
  readonly name: string
  readonly value: string
}

/** Lines that were read before: an engine's answers differ in few of them. */
const known = new Map<string, Field>()
const maxKnown = 256
const maxKnownLength = 256

/** Throws `MalformedReply`. */
function fieldOf(line: string): Field {
  const read = known.get(line)
  if (read !== undefined) return read
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(0, colon)).toLowerCase()
  const value = line.slice(colon + 1).trim()
  if (!fieldName.test(name) || !fieldValue.test(value)) throw new MalformedReply('a header field is not valid')
  const field = { name, value }
  if (line.length > maxKnownLength) return field
  if (known.size >= maxKnown) known.clear()
  known.set(line, field)
  return field
}

function frameOf(headers: ReplyHead['headers'], status: number, persistent: boolean): BodyFrame {
  const coding = headers['transfer-encoding']
  const length = headers['content-length']
  if (status < 200 || status === 204 || status === 304) return { kind: 'none' }
  if (coding !== undefined) {
    if (typeof coding !== 'string' || coding.toLowerCase() !== 'chunked' || !persistent) {
      throw new MalformedReply('the transfer-encoding is not chunked alone')
    }
    if (length !== undefined) throw new MalformedReply('there is a content-length beside a transfer-encoding')
    return { kind: 'chunked' }
  }
  if (length === undefined) return { kind: 'close' }
  if (typeof length !== 'string' || !/^\d{1,15}$/.test(length)) {
    throw new MalformedReply('the content-length is not one number')
  }
  return { kind: 'length', length: Number(length) }
}

function keepMsOf(headers: ReplyHead['headers'], persistent: boolean): number {
  const { connection, 'keep-alive': keepAlive } = headers
  const said = connection === undefined ? '' : String(connection).toLowerCase()
  if (said.includes('close') || (!persistent && !said.includes('keep-alive'))) return 0
  if (keepAlive === undefined) return defaultKeepMs
  const seconds = /\btimeout=(\d{1,9})\b/.exec(String(keepAlive))?.[1]
  if (seconds === undefined) return defaultKeepMs
  return Math.min(longestKeepMs, Math.max(0, Number(seconds) * 1000 - keepMarginMs))
}
