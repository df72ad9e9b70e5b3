import { EngineError, validationError } from '../../errors.ts'
import { readList, readText } from '../../json/read.ts'
import type { Engine } from '../../engine.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { RouteTable } from '../../http/server.ts'

/**
 * Pause, abort and weight routes of vLLM's development mode (`entrypoints/serve/dev/rlhf/api_router.py` at 0100a212).
 * New weights themselves come over `/control/weights`; these routes carry versions only.
 */
export const weightRoutes: RouteTable = {
  'POST /pause': pauseRoute,
  'POST /resume': (exchange, engine) => {
    engine.gate.resume()
    exchange.json({ status: 'resumed' })
  },
  'GET /is_paused': (exchange, engine) => exchange.json({ is_paused: engine.gate.scope !== 'none' }),
  'POST /abort_requests': abortRoute,
  'GET /weight_info': (exchange, engine) => exchange.json({ weight_version: engine.weightVersion }),
  'POST /update_weight_version': updateVersionRoute,
  'POST /init_weight_transfer_engine': (exchange) => needing(exchange, 'init_info', 'Weight transfer initialized'),
  'POST /start_weight_update': (exchange) => exchange.json({ message: 'Weight update started' }),
  'POST /update_weights': (exchange) => needing(exchange, 'update_info', 'Weights updated'),
  'POST /finish_weight_update': finishUpdateRoute,
  'POST /reset_prefix_cache': (exchange) => exchange.empty(),
  'GET /get_world_size': (exchange) => exchange.json({ world_size: 1 }),
}

/** Pauses by vLLM's three modes: `abort` ends what runs, `wait` lets it end, `keep` freezes it where it stands. */
export async function pause(engine: Engine, mode: 'abort' | 'wait' | 'keep'): Promise<void> {
  engine.gate.pause(mode === 'keep' ? 'all' : 'new')
  if (mode === 'abort') engine.abortFlights()
  if (mode !== 'keep') await engine.drained()
}

async function pauseRoute(exchange: Exchange, engine: Engine): Promise<void> {
  const asked = exchange.url.searchParams.get('mode') ?? 'abort'
  const mode = (['abort', 'wait', 'keep'] as const).find((name) => name === asked)
  if (mode === undefined) throw validationError("Input should be 'abort', 'wait' or 'keep'", 'mode', asked)
  await pause(engine, mode)
  exchange.json({ status: 'paused' })
}

async function abortRoute(exchange: Exchange, engine: Engine): Promise<void> {
  const ids = (readList(await exchange.body(), 'request_ids') ?? []).filter((id) => typeof id === 'string')
  const aborted = engine.abortFlights(ids.length === 0 ? undefined : new Set(ids))
  // vLLM answers with the number of ids it was given, or of everything that ran.
  exchange.json({ status: 'aborted', aborted: ids.length === 0 ? aborted : ids.length })
}

async function updateVersionRoute(exchange: Exchange, engine: Engine): Promise<void> {
  const version = readText(await exchange.body(), 'new_version')
  if (version === undefined) throw validationError('Field required', 'new_version')
  exchange.json({ success: true, new_version: engine.updateWeightVersion(version) })
}

async function finishUpdateRoute(exchange: Exchange, engine: Engine): Promise<void> {
  const version = readText(await exchange.body(), 'weight_version')
  if (version !== undefined) engine.updateWeightVersion(version)
  exchange.json({ message: 'Weight update finished' })
}

async function needing(exchange: Exchange, field: string, message: string): Promise<void> {
  const body = await exchange.body()
  if ((body.get(field) ?? null) === null) throw new EngineError(`Missing '${field}' in request body`)
  exchange.json({ message })
}
