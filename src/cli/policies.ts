import { type Config, enginesPlace } from '../config/index.ts'
import { PaddockError } from '../core/index.ts'
import type { Proxy, ProxyPolicy } from '../proxy/index.ts'
import { type ResolvedEngine, resolveEngine, type ResolveOptions } from './engine.ts'

/** An engine that has not loaded an adapter by then is not waited for. */
const loadMs = 60_000

type PolicyConfig = Config['policies'][string]

/** The engine of the first policy, which is that of the process; as it is configured where there is one policy. */
export function leadEngine({ engine, policies }: Pick<Config, 'engine' | 'policies'>): Config['engine'] {
  const [first] = Object.values(policies)
  return first === undefined ? engine : engineOf(engine, first)
}

/**
 * The policies with their engines, the first one without: that is `lead`. Those that name no engines share that of `engine`. Empty where one
 * policy is configured. `onOpen` is told what is started, to end it. Throws what `resolveEngine` throws, and `CONFIG_INVALID` where an engine comes later.
 */
export async function openPolicies(
  { engine, policies }: Pick<Config, 'engine' | 'policies'>,
  lead: ResolvedEngine | null,
  o: ResolveOptions & { readonly onOpen: (engine: ResolvedEngine) => void },
): Promise<readonly ProxyPolicy[]> {
  const all = Object.entries(policies)
  const [first] = all
  if (first === undefined) return []
  if (lead === null) {
    throw new PaddockError('CONFIG_INVALID', 'There are several policies, and the engine of the first comes later.', {
      fix: 'Name the engines in `engine.url` or `policies.<name>.engines`.',
    })
  }
  const known = new Map<string, Promise<ResolvedEngine>>([[placeOf(engine, first[1]), Promise.resolve(lead)]])
  const opened: ProxyPolicy[] = []
  for (const [name, policy] of all) {
    const place = placeOf(engine, policy)
    const found = known.get(place) ?? resolveEngine(engineOf(engine, policy), o)
    if (!known.has(place)) o.onOpen(await found)
    known.set(place, found)
    const { adapter, replicas, model } = await found
    opened.push({
      name,
      trained: policy.trained,
      model: policy.model ?? model,
      isShared: all.some(([other, { engines }]) => other !== name && placeOf(engine, { engines }) === place),
      engine: name === first[0] ? null : { adapter, replicas },
    })
  }
  return opened
}

/** Policies that begin as an adapter are asked under it from the first call on. Throws `WEIGHTS_REFUSED` where no replica has it. */
export async function takeAdapters(
  { policies }: Pick<Config, 'policies'>,
  proxy: Pick<Proxy, 'engineOf'>,
): Promise<void> {
  for (const [name, { adapter }] of Object.entries(policies)) {
    if (adapter === null) continue
    const nothingMoves = { mode: 'drain', cache: 'clear', timeoutMs: loadMs, requests: [] } as const
    await proxy.engineOf(name).updateWeights({ ...nothingMoves, version: adapter.name, adapter })
  }
}

/** Every engine that is asked for policies, once each, that of the first policy first. */
export function policyEngines({ engine, policies }: Pick<Config, 'engine' | 'policies'>): readonly Config['engine'][] {
  const all = Object.values(policies)
  if (all.length === 0) return [engine]
  const places = all.map((policy) => placeOf(engine, policy))
  return all.filter((_, at) => places.indexOf(places[at] ?? '') === at).map((policy) => engineOf(engine, policy))
}

/** Policies of one place share an engine. */
function placeOf({ url }: Config['engine'], { engines }: Pick<PolicyConfig, 'engines'>): string {
  return enginesPlace(engines ?? url ?? [])
}

function engineOf(engine: Config['engine'], { engines, apiKey, kind, model }: PolicyConfig): Config['engine'] {
  if (engines === null) return { ...engine, model: model ?? engine.model }
  return { ...engine, url: engines, apiKey, kind, model }
}
