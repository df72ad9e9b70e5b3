import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../config/index.ts'
import { isPaddockError } from '../../core/index.ts'
import { type EngineProbe, probeEngine } from '../../proxy/index.ts'
import { describeEngine, type FoundReplica, resolveEngine } from '../engine.ts'
import { policyEngines } from '../policies.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** Asks every engine that is configured: those of the policies, then those of roles. */
export async function engineFindings(config: Config, signal: AbortSignal): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const engine of policyEngines(config)) findings.push(...(await policyFindings(engine, signal)))
  for (const [role, named] of Object.entries(config.engines)) {
    if (named === null) continue
    findings.push(await roleFinding(role, named.url, { model: null, ...named }))
  }
  return findings
}

async function roleFinding(role: string, url: string, of: Parameters<typeof probeEngine>[1]): Promise<Finding> {
  try {
    return ok(role, describeEngine(await probeEngine(url, of), 0))
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return problem(role, `${error.code}: ${error.message}`, error.fix)
  }
}

/** Asks the engine for one tool call and looks at what came: ids, logprobs, their kind. */
async function policyFindings(config: Config['engine'], signal: AbortSignal): Promise<readonly Finding[]> {
  if (Array.isArray(config.url) && config.url.length === 0) return [ok('engine', 'none yet: a trainer names it')]
  // The scripted engine's journal belongs to a run; a probe must not write into it.
  const scratch = await mkdtemp(join(tmpdir(), 'paddock-doctor-'))
  try {
    const engine = await resolveEngine(config, { dataDirectory: scratch, signal })
    try {
      const { report } = engine
      return [
        ok('engine', engine.description),
        ...(engine.found.length > 1 ? engine.found.map(replicaFinding) : []),
        ...(engine.scripted === null
          ? []
          : [ok('engine', 'no ENGINE_URL is set; `ENGINE_URL=http://host:port paddock doctor` probes a real server')]),
        ok('engine', `gives ${given(report)}`),
        ok('engine', `logprob kind: ${report.logprobKind}`),
        strategyFinding(report),
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

function replicaFinding({ url, report, problem: what }: FoundReplica): Finding {
  if (report !== null)
    return ok('replica', `${url} answers${report.version === null ? '' : `, version ${report.version}`}`)
  const said = what === null ? 'it does not answer' : `${what.code}: ${what.message.replace(/\.$/, '')}`
  return warning('replica', `${url}: ${said}`, 'Start it; it takes calls as soon as its health route answers.')
}

const ways = {
  derender: 'splice, by render, generate and derender',
  chat: 'splice, by tokenize and chat from ids',
  parse: 'splice, by tokenize, generate and parsers of text; answers come whole',
} as const

function strategyFinding(report: EngineProbe): Finding {
  const { spliceVoid: why } = report
  return why === null
    ? ok('engine', `strategy auto: ${strategy(report)}`)
    : warning(
        'engine',
        `strategy auto: record (splice is void, the engine's render: ${why})`,
        'Use an engine whose render route honours `add_generation_prompt: false` and renders answers at the end.',
      )
}

function strategy({ splice, kind, streamsIds }: EngineProbe): string {
  if (splice === null) return `record${kind === 'openai' ? '' : ' (the engine has no token routes)'}`
  return `${ways[splice]}${streamsIds ? '' : '; streams are made of whole answers, with keep-alives'}`
}

function given(report: EngineProbe): string {
  const found = [
    ...(report.givesIds && report.givesPromptIds ? ['token ids'] : []),
    ...(report.givesLogprobs ? ['logprobs'] : []),
    ...(report.givesToolCalls ? ['tool calls'] : []),
  ]
  return found.length === 0 ? 'text only' : found.join(', ')
}
