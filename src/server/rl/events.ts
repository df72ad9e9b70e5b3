import { z } from 'zod'
import type { RunEvent } from '../../trajectory/index.ts'
import { type RlApi, written } from './api.ts'
import type { RlParts } from './contract.ts'
import { cursorOf, placeOf } from './cursor.ts'
import { waitS, whileThere } from './shapes.ts'

const query = z.object({
  after: z.string().optional(),
  wait_s: waitS,
  limit: z.coerce.number().int().min(1).max(10_000).default(1000),
})

const lines = 'application/x-ndjson'

/** What happens in a run, a line of JSON each. Events inform; claims give. */
export function eventRoutes(api: RlApi, { runs, trainer }: RlParts): void {
  const about = { name: 'events', says: 'What happened behind a cursor', query, answer: z.string(), types: [lines] }
  api.add('get', '/runs/:id/events', about, async ({ response, params: { id: runId }, query: asked }) => {
    const { incarnation: told, after } = placeOf(runId, asked.after)
    const events = await runs.events(runId, {
      after,
      incarnation: told,
      limit: asked.limit,
      waitMs: asked.wait_s * 1000,
      signal: whileThere(response),
    })
    const incarnation = await trainer.incarnation(runId)
    const found = events.map((event) => ({ cursor: cursorOf(runId, incarnation, event.seq), ...eventView(event) }))
    const quiet = { cursor: cursorOf(runId, incarnation, after), type: 'heartbeat' }
    const text = (found.length === 0 ? [quiet] : found).map((one) => `${JSON.stringify(one)}\n`).join('')
    response.type(lines).send(text)
    return written
  })
}

function eventView({ kind, at, data }: RunEvent) {
  const named = Object.entries(data).map(([key, value]) => [
    key.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`),
    value,
  ])
  return { type: kind, at, ...Object.fromEntries(named) }
}
