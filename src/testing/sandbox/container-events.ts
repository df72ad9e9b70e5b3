import { createInterface } from 'node:readline'
import { z } from 'zod'
import { connectDaemon } from '../../sandbox/index.ts'

const eventSchema = z.object({ status: z.string(), id: z.string() })

export interface ContainerEvent {
  /** `create`, `start`, `pause`, `unpause`, `die`, `destroy`, … */
  readonly status: string
  /** Of the container. */
  readonly id: string
}

/**
 * What the daemon tells of containers, from the moment of this call on: the daemon answers before it listens, and what
 * happens between is asked of its past. Dispose ends it.
 */
export async function containerEvents(
  filters: Readonly<Partial<Record<'container' | 'event' | 'label', string[]>>>,
): Promise<AsyncIterator<ContainerEvent, undefined> & AsyncDisposable> {
  const since = Date.now() / 1000
  const stream = await connectDaemon().getEvents({ since, filters: { type: ['container'], ...filters } })
  const lines = createInterface({ input: stream })
  const each = lines[Symbol.asyncIterator]()
  return {
    next: async () => {
      const line = await each.next()
      if (line.done === true) return { done: true, value: undefined }
      return { done: false, value: eventSchema.parse(JSON.parse(line.value)) }
    },
    [Symbol.asyncDispose]: () => {
      lines.close()
      if ('destroy' in stream && typeof stream.destroy === 'function') stream.destroy()
      return Promise.resolve()
    },
  }
}
