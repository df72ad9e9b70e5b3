import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, isPaddockError } from '../../core/index.ts'
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
        gives('token ids', report.givesTokenIds),
        gives('logprobs', report.givesLogprobs),
        gives('tool calls', report.givesToolCalls),
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

function gives(what: string, given: boolean): Finding {
  return given
    ? ok('engine', `gives ${what}`)
    : warning(
        'engine',
        `gives no ${what}`,
        `Use a server that does; without ${what} the recorded calls are less useful.`,
      )
}
