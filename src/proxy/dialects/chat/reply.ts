import { PaddockError } from '../../../core/index.ts'
import { type SseEvent, SseSplitter } from '../../http/sse.ts'
import type { ReplyReader, StreamPiece } from '../contract.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { type Answer, parseEngineJson } from './answer.ts'
import { applyEdits, type ChunkFacts, type ChunkView, readIds, scanChunk } from './chunk-scan.ts'
import type { ToolDeltas } from './tool-deltas.ts'

const done = Buffer.from('[DONE]')

/**
 * The engine's stream, turned into the client's: `cut` gives what may be written at once, without building values;
 * `read` then parses what was cut into the {@link Answer}. Call `read` after the write.
 */
export class ReplyStream implements ReplyReader {
  readonly answer: Answer
  sawDone = false
  private readonly view: ChunkView
  private readonly splitter = new SseSplitter()
  private readonly tools: ToolDeltas
  private unread: { payload: Buffer; facts: ChunkFacts }[] = []

  constructor(answer: Answer, view: ChunkView, tools: ToolDeltas) {
    this.answer = answer
    this.view = view
    this.tools = tools
  }

  /** Throws `ENGINE_ERROR` where an event is not JSON. */
  cut(chunk: Buffer): StreamPiece[] {
    const pieces: StreamPiece[] = []
    for (const event of this.splitter.push(chunk)) {
      const { payload } = event
      if (payload === null) continue
      if (payload.equals(done)) {
        this.sawDone = true
        pieces.push({ bytes: event.bytes, actionable: true })
        continue
      }
      let facts = this.scan(payload)
      let whole = payload
      if (facts.hasToolCalls) {
        whole = this.tools.complete(payload)
        if (whole !== payload) facts = this.scan(whole)
      }
      this.unread.push({ payload: whole, facts })
      // An error inside the stream is told by the proxy in its own words.
      if (facts.hasError) continue
      if (facts.usageOnly && !this.view.wantsUsage) continue
      pieces.push({ bytes: this.visible(event, whole, facts), actionable: facts.finishes })
    }
    return pieces
  }

  /** Reads what was cut since the last time. */
  read(): void {
    const events = this.unread
    this.unread = []
    for (const { payload, facts } of events) readInto(this.answer, payload, facts)
  }

  /** Nothing: the events of this wire are the engine's own, its end included. */
  close(): StreamPiece[] {
    return []
  }

  private scan(payload: Buffer): ChunkFacts {
    try {
      return scanChunk(payload, this.view)
    } catch (cause) {
      const start = payload.subarray(0, 80).toString()
      throw new PaddockError('ENGINE_ERROR', `The engine sent an event that is not JSON: ${start}.`, { cause })
    }
  }

  /** The event without what the client must not see: one copy at most. */
  private visible(event: SseEvent, payload: Buffer, facts: ChunkFacts): Buffer {
    if (payload !== event.payload) return Buffer.concat([dataPrefix, applyEdits(payload, facts.edits), eventEnd])
    return applyEdits(event.bytes, facts.edits, payload.byteOffset - event.bytes.byteOffset)
  }
}

const dataPrefix = Buffer.from('data: ')
const eventEnd = Buffer.from('\n\n')

/** Reads a whole completion and returns the bytes that the client gets. Throws `ENGINE_ERROR` where it is not one. */
export function readWholeReply(body: Buffer, answer: Answer, view: ChunkView): Buffer {
  let facts: ChunkFacts
  try {
    facts = scanChunk(body, { ...view, wantsUsage: true })
  } catch (cause) {
    throw new PaddockError('ENGINE_ERROR', 'The engine sent an answer that is not JSON.', { cause })
  }
  readInto(answer, body, facts)
  if (answer.error !== null || answer.choices.length === 0) {
    const said = answer.error?.['message']
    throw new PaddockError(
      'ENGINE_ERROR',
      typeof said === 'string' ? said : 'The engine sent an answer without choices.',
    )
  }
  for (const message of facts.messages) {
    const choice = answer.choices[message.choice]
    if (choice !== undefined) choice.rawMessage = body.toString('utf8', message.start, message.end)
  }
  return applyEdits(body, facts.edits)
}

/** Reads one event or body into the answer and gives its value. Throws `ENGINE_ERROR`. */
export function readInto(answer: Answer, payload: Buffer, facts: ChunkFacts): LooseObject {
  let text = payload
  if (facts.promptIds !== null) {
    const { start, end } = facts.promptIds
    answer.promptIds = readIds(payload, start, end)
    text = applyEdits(payload, [{ start, end, nulled: true }])
  }
  const root = parseEngineJson(text)
  if (root === null) throw new PaddockError('ENGINE_ERROR', 'The engine sent an event that is not a JSON object.')
  answer.add(root)
  return root
}
