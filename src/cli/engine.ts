import { join } from 'node:path'
import type { Config } from '../config/index.ts'
import { isPaddockError, makeFolder, PaddockError } from '../core/index.ts'
import {
  createScorer,
  type EngineAdapter,
  type EngineProbe,
  openaiEngine,
  probeEngine,
  llamacppEngine,
  type Scorer,
  sglangEngine,
  vllmEngine,
} from '../proxy/index.ts'
import { type ScriptedEngine, startScriptedEngine } from './scripted.ts'

/** A replica as it was found. */
export interface FoundReplica {
  readonly url: string
  /** Null where it could not be asked; `problem` says why. */
  readonly report: EngineProbe | null
  readonly problem: PaddockError | null
}

/** The engine that the proxy fronts: a real server, or the scripted engine as a process of ours. */
export interface ResolvedEngine extends AsyncDisposable {
  readonly adapter: EngineAdapter
  /** Further replicas of it. */
  readonly replicas: readonly EngineAdapter[]
  /** All of them, in the order of the configuration; empty for the scripted engine. */
  readonly found: readonly FoundReplica[]
  readonly model: string
  /** Null for a real server. */
  readonly scripted: ScriptedEngine | null
  readonly report: EngineProbe
  /** For people: what it is, in a few words. */
  readonly description: string
}

export interface ResolveOptions {
  /** Where the scripted engine's journal goes unless configured. */
  readonly dataDirectory: string
  readonly signal?: AbortSignal
}

/**
 * Finds out what the configured engine is, or starts the scripted one where none is configured. Throws
 * `ENGINE_UNREACHABLE`, and `CONFIG_INVALID` where the model has to be named.
 */
export async function resolveEngine(config: Config['engine'], options: ResolveOptions): Promise<ResolvedEngine> {
  if (config.url === null) return startOwn(config, options)
  const urls = typeof config.url === 'string' ? [config.url] : config.url
  if (urls.length === 0) throw new PaddockError('ENGINE_NONE', 'No engine is configured.')
  const found = await Promise.all(urls.map((url) => findReplica(url, config)))
  const first = found.find((one) => one.report !== null)
  const report = first?.report ?? null
  if (first === undefined || report === null) {
    throw found[0]?.problem ?? new PaddockError('ENGINE_UNREACHABLE', 'No replica of the engine can be reached.')
  }
  for (const other of found) agree(first.url, report, other)
  const { model } = report
  const adapter = (url: string): EngineAdapter =>
    adapterFor(config.kind === 'auto' ? report.kind : config.kind, url, config.apiKey, report)
  return {
    adapter: adapter(first.url),
    // One that is down now takes calls as soon as its health route answers.
    replicas: found.filter((one) => one !== first).map((one) => adapter(one.url)),
    found,
    model,
    scripted: null,
    report,
    description: describeEngine({ ...report, url: first.url }, urls.length - 1),
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** For people: what it is, in a few words, with so many replicas more. */
export function describeEngine({ kind, version, url, model }: EngineProbe, more: number): string {
  return `${kind}${version === null ? '' : ` ${version}`} at ${url}${more === 0 ? '' : ` and ${more} more`}, model ${model}`
}

/** Asks one replica what it is. */
export async function findReplica(url: string, config: Config['engine']): Promise<FoundReplica> {
  try {
    return { url, report: await probeEngine(url, { apiKey: config.apiKey, model: config.model }), problem: null }
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return { url, report: null, problem: error }
  }
}

/** Replicas are interchangeable: a session may be answered by any of them. Throws `CONFIG_INVALID`. */
function agree(firstUrl: string, first: EngineProbe, { url, report }: FoundReplica): void {
  if (report === null) return
  for (const what of ['kind', 'model', 'logprobKind', 'maxModelLen'] as const) {
    if (report[what] === first[what]) continue
    const differ = `The replicas ${firstUrl} and ${url} differ in ${what}: ${String(first[what])} and ${String(report[what])}.`
    throw new PaddockError('CONFIG_INVALID', differ, { fix: 'List replicas of one engine only in `engine.url`.' })
  }
}

async function startOwn(config: Config['engine'], options: ResolveOptions): Promise<ResolvedEngine> {
  await makeFolder(options.dataDirectory)
  const scripted = await startScriptedEngine({
    profile: config.scripted.profile,
    seed: config.scripted.seed,
    journal: config.scripted.journal ?? join(options.dataDirectory, 'engine-journal.jsonl'),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  })
  try {
    const report = await probeEngine(scripted.url)
    return {
      adapter: adapterFor('vllm', scripted.url, null, report),
      replicas: [],
      found: [],
      model: scripted.model,
      scripted,
      report,
      description: `scripted engine (${scripted.model}): no language model, it runs prepared steps`,
      [Symbol.asyncDispose]: () => scripted[Symbol.asyncDispose](),
    }
  } catch (error) {
    await scripted[Symbol.asyncDispose]()
    throw error
  }
}

/** An engine that only scores, asked for what it is when it is first needed, and again where it could not be. */
export function scoringEngine(role: Config['engines']['teacher']): (() => Promise<Scorer>) | null {
  if (role === null) return null
  let made: Promise<Scorer> | null = null
  return () => {
    made ??= probeEngine(role.url, { apiKey: role.apiKey, model: null }).then(
      (report) =>
        createScorer(adapterFor(role.kind === 'auto' ? report.kind : role.kind, report.url, role.apiKey, report)),
      (cause: unknown) => {
        made = null
        throw cause
      },
    )
    return made
  }
}

/** The adapter of a replica that was found. */
export function adapterFor(
  kind: EngineProbe['kind'],
  url: string,
  apiKey: string | null,
  report: EngineProbe,
): EngineAdapter {
  switch (kind) {
    case 'vllm':
      return vllmEngine({ url, apiKey, version: report.version, logprobKind: report.logprobKind })
    case 'sglang':
      return sglangEngine({
        url,
        apiKey,
        version: report.version,
        streamsIds: report.streamsIds,
        routedExperts: report.routedExperts,
        strictThinking: report.strictThinking,
        logprobKind: report.logprobKind,
      })
    case 'llamacpp':
      return llamacppEngine({ url, apiKey })
    case 'openai':
      return openaiEngine({ url, apiKey, logprobs: report.givesLogprobs })
  }
}
