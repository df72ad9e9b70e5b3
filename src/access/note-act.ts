import type { Request, RequestHandler } from 'express'
import { type Clock, type Event, type Id, type IdMaker, newId, systemClock } from '../core/index.ts'
import type { Store } from '../trajectory/index.ts'
import { admittedAs } from './gate.ts'

/** What {@link noteActs} writes to. */
export interface ActLog {
  readonly recorder: Pick<Store['recorder'], 'appendEvent'>
  readonly catalogue: Pick<Store['catalogue'], 'rollout'>
}

type Act = Extract<Event, { kind: 'act' }>

/**
 * Writes down who asked for what steers others, before it is done: an event `act`, for the routes whose row says so. It stands behind the body's
 * parser. What is refused afterwards was asked all the same.
 */
export function noteActs(log: ActLog, o: { readonly clock?: Clock; readonly newId?: IdMaker } = {}): RequestHandler {
  return async (request, _response, next) => {
    const { caller, row, params } = admittedAs(request)
    if (row.told !== null) {
      const rolloutId = await rolloutOf(log, row.route, params['id'])
      await log.recorder.appendEvent({
        id: (o.newId ?? newId)(),
        at: (o.clock ?? systemClock).now(),
        rolloutId,
        sessionId: null,
        kind: 'act',
        token: caller.name,
        role: caller.role,
        action: row.route,
        path: params,
        said: saidIn(request, row.told),
      })
    }
    next()
  }
}

/** An event of a rollout that is not there would be nobody's. Throws `NOT_FOUND`. */
async function rolloutOf({ catalogue }: ActLog, route: string, id: string | undefined): Promise<Id | null> {
  return id !== undefined && route.includes('/rollouts/:id/') ? (await catalogue.rollout(id)).id : null
}

/** The named fields of a body, those that are plain values. */
function saidIn(request: Request, names: readonly string[]): Act['said'] {
  const body: unknown = request.body
  if (typeof body !== 'object' || body === null) return {}
  const given = new Map<string, unknown>(Object.entries(body))
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = given.get(name)
      return typeof value === 'string' || typeof value === 'number'
        ? [[name, String(value).slice(0, 200)] as const]
        : []
    }),
  )
}
