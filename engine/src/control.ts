import { EngineError, validationError } from './errors.ts'
import { readFaultOrder } from './faults/orders.ts'
import { readFlag, readList, readObject, readText } from './json/read.ts'
import { instructionDigest, readScript } from './policy/scripts.ts'
import { JsonNumber } from './json/lossless.ts'
import type { Engine } from './engine.ts'
import type { Exchange } from './http/exchange.ts'
import type { RouteTable } from './http/server.ts'
import type { JsonObject } from './json/lossless.ts'

/** Routes of the harness side: scripts, weights, faults, journal. Never part of any real server. */
export const controlRoutes: RouteTable = {
  'GET /control': (exchange, engine) => {
    exchange.json({
      model: engine.profile.model,
      wire: engine.options.wire,
      weightVersion: engine.weightVersion,
      scripts: engine.scripts.list().length,
      inFlight: engine.flights.size,
      /** Output tokens of what runs. */
      drawing: [...engine.flights].reduce((sum, flight) => sum + flight.drawn(), 0),
    })
  },
  'POST /control/scripts': postScripts,
  'GET /control/scripts': (exchange, engine) => exchange.json({ scripts: engine.scripts.list() }),
  'DELETE /control/scripts': (exchange, engine) => {
    engine.scripts.clear()
    exchange.json({ scripts: 0 })
  },
  'POST /control/weights': postWeights,
  'POST /control/faults': postFaults,
  'GET /control/faults': (exchange, engine) => exchange.json({ faults: engine.faults.list() }),
  'DELETE /control/faults': (exchange, engine) => {
    engine.faults.clear()
    exchange.json({ faults: 0 })
  },
  'GET /control/journal': (exchange, engine) => exchange.json({ lines: engine.journal.lines() }),
  'DELETE /control/journal': (exchange, engine) => {
    engine.journal.clear()
    exchange.json({ lines: 0 })
  },
}

/** One script, or `{"scripts": [...]}`. All are read before any is taken. */
async function postScripts(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const scripts = objects(readList(body, 'scripts'), 'scripts')?.map(readScript) ?? [readScript(body)]
  for (const script of scripts) engine.scripts.put(script)
  exchange.json({
    scripts: scripts.map((script) => ({
      instructionSha256: script.instructionSha256,
      candidates: script.candidates.map((c) => c.name),
    })),
  })
}

/**
 * `{"instruction"|"instructionSha256", "weights": {name: logit}, "version"?, "bump"?}` or `{"updates": [...], …}`: sets
 * candidate logits and then counts the weight version up, unless `bump` is false.
 */
async function postWeights(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const updates = objects(readList(body, 'updates'), 'updates') ?? [body]
  const changes = updates.flatMap((update) => weightChanges(update, engine))
  for (const change of changes) change()
  if (readFlag(body, 'bump') !== false) engine.updateWeightVersion(readText(body, 'version'))
  exchange.json({ weightVersion: engine.weightVersion, changed: changes.length })
}

function weightChanges(update: JsonObject, engine: Engine): (() => void)[] {
  const instruction = readText(update, 'instruction')
  const digest = instruction === undefined ? readText(update, 'instructionSha256') : instructionDigest(instruction)
  if (digest === undefined) throw validationError('Field required', 'instructionSha256')
  const script = engine.scripts.get(digest)
  if (script === undefined)
    throw new EngineError(`no script for instruction ${digest}`, { status: 404, type: 'NotFoundError' })
  const weights = readObject(update, 'weights')
  if (weights === undefined) throw validationError('Field required', 'weights')
  return [...weights].map(([name, value]) => {
    const candidate = script.candidates.find((other) => other.name === name)
    if (candidate === undefined) throw validationError(`no candidate ${name}`, 'weights')
    const weight = value instanceof JsonNumber ? value.value : Number.NaN
    if (!Number.isFinite(weight)) throw validationError('weights must be finite numbers', `weights.${name}`)
    return () => {
      candidate.weight = weight
    }
  })
}

async function postFaults(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const orders = objects(readList(body, 'faults'), 'faults')?.map(readFaultOrder) ?? [readFaultOrder(body)]
  for (const order of orders) engine.faults.add(order)
  exchange.json({ faults: engine.faults.list() })
}

function objects(list: ReturnType<typeof readList>, place: string): JsonObject[] | undefined {
  return list?.map((item, at) => {
    if (item instanceof Map) return item
    throw validationError('Input should be a valid dictionary', `${place}.${at}`)
  })
}
