import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, isPaddockError } from '../../core/index.ts'
import type { EngineProbe } from '../../proxy/index.ts'
import { resolveEngine } from '../engine.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** Asks the engine for one tool call and looks at what came: ids, logprobs, their kind. */
export async function engineFindings(config: Config, signal: AbortSignal): Promise<readonly Finding[]> {
  // The scripted engine's journal belongs to a run; a probe must not write into it.
  const scratch = await mkdtemp(join(tmpdir(), 'paddock-doctor-'))
  try {
    const engine = await resolveEngine(config.engine, { dataDirectory: scratch, signal })
    try {
      const { report } = engine
      return [
        ok('engine', engine.description),
        ...(engine.scripted === null
          ? []
          : [ok('engine', 'no ENGINE_URL is set; `ENGINE_URL=http://host:port paddock doctor` probes a real server')]),
        ok('engine', `gives ${given(report)}`),
        ok('engine', `logprob kind: ${report.logprobKind}`),
        ...report.missing.map((flag) => warning('engine', flag.what, flag.fix)),
      ]
    } finally {
      await engine[Symbol.asyncDispose]()
    }
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return [problem('engine', `${error.code}: ${error.message}`, error.fix)]
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

function given(report: EngineProbe): string {
  const found = [
    ...(report.givesIds && report.givesPromptIds ? ['token ids'] : []),
    ...(report.givesLogprobs ? ['logprobs'] : []),
    ...(report.givesToolCalls ? ['tool calls'] : []),
  ]
  return found.length === 0 ? 'text only' : found.join(', ')
}
