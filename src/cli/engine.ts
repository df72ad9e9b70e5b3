import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../core/index.ts'
import { type EngineAdapter, type EngineProbe, openaiEngine, probeEngine, vllmEngine } from '../proxy/index.ts'
import { type ScriptedEngine, startScriptedEngine } from './scripted.ts'

/** The engine that the proxy fronts: a real server, or the scripted engine as a process of ours. */
export interface ResolvedEngine extends AsyncDisposable {
  readonly adapter: EngineAdapter
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
  const report = await probeEngine(config.url, { apiKey: config.apiKey, model: config.model })
  const { model } = report
  return {
    adapter: adapterFor(config.kind === 'auto' ? report.kind : config.kind, config.url, config.apiKey, report),
    model,
    scripted: null,
    report,
    description: `${report.kind}${report.version === null ? '' : ` ${report.version}`} at ${config.url}, model ${model}`,
    [Symbol.asyncDispose]: async () => undefined,
  }
}

async function startOwn(config: Config['engine'], options: ResolveOptions): Promise<ResolvedEngine> {
  await mkdir(options.dataDirectory, { recursive: true })
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
      model: scripted.model,
      scripted,
      report,
      description: `scripted engine (${scripted.model}): no language model, it plays scripted steps`,
      [Symbol.asyncDispose]: () => scripted[Symbol.asyncDispose](),
    }
  } catch (error) {
    await scripted[Symbol.asyncDispose]()
    throw error
  }
}

function adapterFor(kind: 'vllm' | 'openai', url: string, apiKey: string | null, report: EngineProbe): EngineAdapter {
  switch (kind) {
    case 'vllm':
      return vllmEngine({ url, apiKey, version: report.version, logprobKind: report.logprobKind })
    case 'openai':
      return openaiEngine({ url, apiKey, logprobs: report.givesLogprobs })
  }
}
