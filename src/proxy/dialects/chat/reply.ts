import { PaddockError } from '../../../core/index.ts'
import { type SseEvent, SseSplitter } from '../../http/sse.ts'
import type { ReplyReader, StreamPiece } from '../contract.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { type Answer, parseEngineJson } from './answer.ts'
import { applyEdits, type ByteEdit, type ChunkFacts, type ChunkView, readIds, scanChunk } from './chunk-scan.ts'
import { plainChunk } from './plain-chunk.ts'
import type { ToolDeltas } from './tool-deltas.ts'
import { noPrompt } from './wire-values.ts'

const done = Buffer.from('[DONE]')

/**
 * The engine's stream, turned into the client's: `cut` gives what may be written at once, without building values;
 * `read` then parses what was cut into the {@link Answer}. Call `read` after the write.
 */
export class ReplyStream implements ReplyReader {
  readonly answer: Answer
  private readonly view: ChunkView
  private readonly splitter = new SseSplitter()
  private readonly tools: ToolDeltas
  /** Events that were cut and not read yet. */
  private unread: { payload: Buffer; facts: ChunkFacts }[] = []

  constructor(answer: Answer, view: ChunkView, tools: ToolDeltas) {
    this.answer = answer
    this.view = view
    this.tools = tools
  }

  /** Throws `ENGINE_ERROR` where an event is not JSON. */
  cut(chunk: Buffer): StreamPiece[] {
    let pieces: StreamPiece[] = []
    for (const event of this.splitter.push(chunk)) {
      const piece = event.end === -1 ? null : (this.plain(event) ?? this.other(event))
      if (piece === null) continue
      // Most chunks hold one event: no room for more is made.
      if (pieces.length === 0) pieces = [piece]
      else pieces.push(piece)
    }
    return pieces
  }

  /** Reads what was cut since the last time, and was not plain. */
  read(): void {
    if (this.unread.length === 0) return
    const events = this.unread
    this.unread = []
    for (const { payload, facts } of events) readInto(this.answer, payload, facts)
  }

  /** Nothing: the events of this wire are the engine's own, its end included. */
  close(): StreamPiece[] {
    return []
  }

  /** The piece of an event that one pass over its bytes can read, which is done at once. Null for any other. */
  private plain(event: SseEvent): StreamPiece | null {
    // Events are read in the order in which they come.
    if (this.unread.length > 0) return null
    if (!plainChunk.read(event.bytes, event.start, event.end, this.view)) return null
    if (!plainChunk.addTo(this.answer)) return null
    return { bytes: event.bytes, edits: plainChunk.edits(), actionable: plainChunk.finishes }
  }

  /** The piece of any other event; null where the client sees nothing of it. */
  private other(event: SseEvent): StreamPiece | null {
    const payload = event.bytes.subarray(event.start, event.end)
    if (payload.equals(done)) return { bytes: event.bytes, edits: noEdits, actionable: true }
    let facts = this.scan(payload)
    let whole = payload
    if (facts.hasToolCalls) {
      whole = this.tools.complete(payload)
      if (whole !== payload) facts = this.scan(whole)
    }
    this.unread.push({ payload: whole, facts })
    // An error inside the stream is told by the proxy in its own words.
    if (facts.hasError) return null
    if (facts.usageOnly && !this.view.wantsUsage) return null
    const actionable = facts.finishes
    if (whole === payload) return { bytes: event.bytes, edits: shifted(facts.edits, event.start), actionable }
    const bytes = Buffer.concat([dataPrefix, applyEdits(whole, facts.edits), eventEnd])
    return { bytes, edits: noEdits, actionable }
  }

  private scan(payload: Buffer): ChunkFacts {
    try {
      return scanChunk(payload, this.view)
    } catch (cause) {
      const start = payload.subarray(0, 80).toString()
      throw new PaddockError('ENGINE_ERROR', `The engine sent an event that is not JSON: ${start}.`, { cause })
    }
  }
}

const dataPrefix = Buffer.from('data: ')
const eventEnd = Buffer.from('\n\n')
const noEdits: readonly ByteEdit[] = []

function shifted(edits: readonly ByteEdit[], by: number): readonly ByteEdit[] {
  return edits.map(({ start, end, nulled }) => ({ start: start + by, end: end + by, nulled }))
}

const showsLogprobs: ChunkView = { wantsLogprobs: true, wantsUsage: true }
const hidesLogprobs: ChunkView = { wantsLogprobs: false, wantsUsage: true }

/**
 * Reads a whole completion and gives the bytes that the client gets, with the edits that are still to be done. Throws
 * `ENGINE_ERROR` where it is not one.
 */
export function readWholeReply(body: Buffer, answer: Answer, view: ChunkView): Omit<StreamPiece, 'actionable'> {
  // A whole answer says its usage unasked.
  const whole = view.wantsLogprobs ? showsLogprobs : hidesLogprobs
  if (plainChunk.read(body, 0, body.length, whole) && plainChunk.addWholeTo(answer)) {
    return { bytes: body, edits: plainChunk.edits() }
  }
  let facts: ChunkFacts
  try {
    facts = scanChunk(body, whole)
  } catch (cause) {
    throw new PaddockError('ENGINE_ERROR', 'The engine sent an answer that is not JSON.', { cause })
  }
  const root = readInto(answer, body, facts)
  if (answer.error !== null || answer.choices.length === 0) {
    const said = answer.error?.['message']
    throw new PaddockError(
      'ENGINE_ERROR',
      typeof said === 'string' ? said : 'The engine sent an answer without choices.',
    )
  }
  const items: readonly unknown[] = Array.isArray(root['choices']) ? root['choices'] : []
  for (const message of facts.messages) {
    answer.keepMessage(items[message.choice], body.toString('utf8', message.start, message.end))
  }
  return { bytes: body, edits: facts.edits }
}

/** Reads one event or body into the answer and gives its value. Throws `ENGINE_ERROR`. */
export function readInto(answer: Answer, payload: Buffer, facts: ChunkFacts): LooseObject {
  let text = payload
  if (facts.promptIds !== null) {
    const { start, end } = facts.promptIds
    answer.tellPrompt(readIds(payload, start, end) ?? noPrompt)
    text = applyEdits(payload, [{ start, end, nulled: true }])
  }
  const root = parseEngineJson(text)
  if (root === null) throw new PaddockError('ENGINE_ERROR', 'The engine sent an event that is not a JSON object.')
  answer.add(root)
  return root
}
