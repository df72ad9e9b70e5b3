import type { RequestHandler, Response } from 'express'
import { type Clock, systemClock } from '../core/index.ts'

/** What is told live, one server-sent event each; kinds are those of {@link liveKinds}. */
export interface LiveEvent {
  readonly kind: LiveKind
  readonly data: unknown
}

/** Kinds on `GET /events`; `docs/reference/events.md` is held against this list. */
export const liveKinds = {
  call: 'a model call was recorded',
  engine: 'something happened to a replica of the engine, or generation was paused',
  progress: 'a rollout entered or left a stage, or ended',
  run: 'a submitted run ended',
  turn: 'a rollout that goes on has come so far',
} as const

export type LiveKind = keyof typeof liveKinds

/** A reader that falls behind by more than this is cut off: it reconnects and reads the store. */
const maxBufferedBytes = 1024 * 1024
const heartbeatMs = 15_000

/** Hands live events to every connected reader. Nothing is kept: the store is the memory. */
export class LiveFeed {
  readonly #readers = new Set<Response>()
  readonly #clock: Clock
  #heartbeat: NodeJS.Timeout | null = null
  #next = 1

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  get readers(): number {
    return this.#readers.size
  }

  publish(event: LiveEvent): void {
    if (this.#readers.size === 0) return
    const data = JSON.stringify({ at: this.#clock.now(), ...asObject(event.data) })
    const frame = `id: ${this.#next}\nevent: ${event.kind}\ndata: ${data}\n\n`
    this.#next += 1
    for (const reader of this.#readers) this.#send(reader, frame)
  }

  /** `GET /events`. */
  readonly handler: RequestHandler = (_request, response) => {
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    response.write(': connected\n\n')
    this.#readers.add(response)
    this.#heartbeat ??= setInterval(() => {
      for (const reader of this.#readers) this.#send(reader, ': alive\n\n')
    }, heartbeatMs).unref()
    response.once('close', () => {
      this.#forget(response)
    })
  }

  /** Ends every reader's stream. */
  close(): void {
    for (const reader of this.#readers) reader.end()
    this.#readers.clear()
    this.#rest()
  }

  #send(reader: Response, frame: string): void {
    if (reader.writableLength > maxBufferedBytes) reader.destroy()
    else reader.write(frame)
  }

  #forget(reader: Response): void {
    this.#readers.delete(reader)
    if (this.#readers.size === 0) this.#rest()
  }

  /** No readers, no heartbeat. */
  #rest(): void {
    if (this.#heartbeat === null) return
    clearInterval(this.#heartbeat)
    this.#heartbeat = null
  }
}

function asObject(data: unknown): object {
  return typeof data === 'object' && data !== null ? data : { value: data }
}
