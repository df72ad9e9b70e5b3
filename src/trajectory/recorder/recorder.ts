import type { Event, Id } from '../../core/index.ts'
import type { CallCommit, CallIntent, Delivery, Recorder, RecorderReader, Segment, SessionRecord } from '../contract.ts'
import { StoreThread, type Synchronous, type ThreadLimits } from '../sqlite/index.ts'
import type { WriterData } from './worker.ts'

/** How the log is opened by its owner. */
export interface RecorderOptions {
  readonly file: string
  readonly synchronous: Synchronous
  /** Milliseconds since the epoch: the end of calls that recovery finds in flight. */
  readonly now: number
  readonly limits?: Partial<ThreadLimits>
}

/** The recorder over its writer thread. */
export interface OpenedRecorder extends Recorder {
  /** Requests and bytes on their way to the disk. */
  readonly load: { readonly requests: number; readonly waiting: number; readonly bytes: number }
}

/**
 * Opens the log for writing, brings its schema forward and runs recovery. Throws `STORE_SCHEMA`, `STORE_CORRUPT`.
 * `makeReader` runs once the file has its schema;
 * reads go there, over another connection, so that a long read never holds a commit up.
 */
export async function openRecorder(
  options: RecorderOptions,
  makeReader: () => Promise<RecorderReader>,
): Promise<{ recorder: OpenedRecorder; interruptedCalls: number }> {
  const data: WriterData = { file: options.file, synchronous: options.synchronous, now: options.now }
  const url = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
  const { thread, value } = await StoreThread.start(url, data, options.limits)
  const { interruptedCalls } = value as { interruptedCalls: number }
  try {
    return { recorder: new ThreadRecorder(thread, await makeReader()), interruptedCalls }
  } catch (error) {
    await thread.close()
    throw error
  }
}

class ThreadRecorder implements OpenedRecorder {
  readonly #thread: StoreThread
  readonly #reader: RecorderReader

  constructor(thread: StoreThread, reader: RecorderReader) {
    this.#thread = thread
    this.#reader = reader
  }

  get load(): OpenedRecorder['load'] {
    return this.#thread.load
  }

  async openSession(session: SessionRecord): Promise<void> {
    await this.#small('openSession', session)
  }

  async closeSession(id: Id, at: number): Promise<void> {
    await this.#thread.call('closeSession', () => ({ args: [id, at, 0] }))
  }

  async beginCall(intent: CallIntent): Promise<void> {
    const size = intent.body.byteLength + 1024
    await this.#thread.call(
      'beginCall',
      () => {
        const body = owned(intent.body)
        return { args: [{ ...intent, body }, size], transfer: [body.buffer] }
      },
      size,
    )
  }

  async commitCall(commit: CallCommit): Promise<void> {
    const size = commitSize(commit)
    await this.#thread.call(
      'commitCall',
      () => {
        const reply = owned(commit.reply)
        const transfer: ArrayBuffer[] = [reply.buffer]
        const segments = commit.segments.map((segment) => movable(segment, transfer))
        return { args: [{ ...commit, segments, reply }, size], transfer }
      },
      size,
    )
  }

  async settleDelivery(callId: Id, delivery: Delivery): Promise<void> {
    await this.#thread.call('settleDelivery', () => ({ args: [callId, delivery, 0] }))
  }

  async supersede(callId: Id, by: Id): Promise<void> {
    await this.#thread.call('supersede', () => ({ args: [callId, by, 0] }))
  }

  async appendEvent(event: Event): Promise<void> {
    await this.#small('appendEvent', event)
  }

  async flush(): Promise<void> {
    await this.#thread.call('flush', () => ({ args: [] }))
  }

  sessions(...args: Parameters<RecorderReader['sessions']>): ReturnType<RecorderReader['sessions']> {
    return this.#reader.sessions(...args)
  }

  session(...args: Parameters<RecorderReader['session']>): ReturnType<RecorderReader['session']> {
    return this.#reader.session(...args)
  }

  events(...args: Parameters<RecorderReader['events']>): ReturnType<RecorderReader['events']> {
    return this.#reader.events(...args)
  }

  async close(): Promise<void> {
    await this.#thread.close()
    await this.#reader.close()
  }

  async #small(op: string, fact: SessionRecord | Event): Promise<void> {
    const size = 1024
    await this.#thread.call(op, () => ({ args: [fact, size] }), size)
  }
}

/** A copy of exactly these bytes: a view may stand in a pool that is not ours to move. */
function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes.byteLength)
  copy.set(bytes)
  return copy
}

function movable(segment: Segment, transfer: ArrayBuffer[]): Segment {
  const tokens = Int32Array.from(segment.tokens)
  const logprobs = segment.logprobs === null ? null : Float32Array.from(segment.logprobs)
  const flags = segment.flags === null ? null : owned(segment.flags)
  transfer.push(tokens.buffer)
  if (logprobs !== null) transfer.push(logprobs.buffer)
  if (flags !== null) transfer.push(flags.buffer)
  return { ...segment, tokens, logprobs, flags }
}

function commitSize(commit: CallCommit): number {
  let size = 1024 + commit.reply.byteLength + 16 * commit.replyMarks.length
  for (const segment of commit.segments) size += 9 * segment.tokens.length
  for (const choice of commit.choices) size += choice.message.length
  return size
}
