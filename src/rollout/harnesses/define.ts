import { PaddockError } from '../../core/index.ts'
import type { AgentPlaces, FailurePattern, Harness, HarnessExit, HarnessReport } from './contract.ts'

/** Checks a harness preset's plain object. Throws `HARNESS_INVALID` with the part and the fix. */
export function defineHarness<H extends Harness>(spec: H): H {
  if (!/^[a-z][a-z0-9-]{0,63}$/.test(spec.name)) {
    throw invalid(`the name ${JSON.stringify(spec.name)}`, 'Use lower case letters, digits and dashes.')
  }
  if (spec.apiVersion !== 1)
    throw invalid(`API version ${String(spec.apiVersion)}`, 'Write the preset for apiVersion 1.')
  if (!(spec.place === 'box' ? 'configure' in spec : 'run' in spec)) {
    throw invalid(`place ${spec.place} without its function`, 'Give `configure` for a box, `run` for the host.')
  }
  return spec
}

/** How a program is told of the agents of its task: `PADDOCK_AGENTS` is a JSON object by name, `PADDOCK_AGENT` the one that it is. */
export function agentVariables(agents: AgentPlaces | undefined): Readonly<Record<string, string>> {
  if (agents === undefined) return {}
  const places = agents.all.map(({ name, baseUrl, apiKey, model }) => [
    name,
    { base_url: baseUrl, api_key: apiKey, model },
  ])
  const own = agents.own === null ? {} : { PADDOCK_AGENT: agents.own }
  return { ...own, PADDOCK_AGENTS: JSON.stringify(Object.fromEntries(places)) }
}

/**
 * The report of a program that ended by itself: exit 0 is `completed`, else the first failure pattern found in its
 * output, else `harness_crash` with the exit and the line of stderr that says most: the last that speaks of an error.
 */
export function reportExit(
  exit: HarnessExit,
  patterns: readonly FailurePattern[],
  answer: string | null,
): HarnessReport {
  if (exit.exitCode === 0) return { end: 'completed', detail: 'exit 0', answer }
  const how = exit.oom
    ? 'killed for memory'
    : exit.signal === null
      ? `exit ${String(exit.exitCode)}`
      : `killed by ${exit.signal}`
  const output = `${exit.stderr}\n${exit.stdout}`
  const known = patterns.find(({ pattern }) => pattern.test(output))
  if (known !== undefined) {
    const fault = known.fault === undefined ? {} : { fault: known.fault }
    return { end: known.end, detail: `${known.detail} (${how})`, answer, ...fault }
  }
  const line = tellingLine(exit.stderr)
  return { end: 'harness_crash', detail: line === '' ? how : `${how}: ${line}`, answer }
}

// Runtimes end their reports with stack frames or their own version.
function tellingLine(stderr: string): string {
  const lines = stderr.trimEnd().split('\n')
  const line = lines.findLast((one) => /error|exception|fatal|panic/i.test(one)) ?? lines.at(-1) ?? ''
  return line.trim().slice(0, 300)
}

function invalid(what: string, fix: string): PaddockError {
  return new PaddockError('HARNESS_INVALID', `A harness preset is not usable: ${what}`, { fix })
}
