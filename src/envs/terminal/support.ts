import { isPaddockError, PaddockError } from '../../core/index.ts'
import { type EgressPolicy, parseEgress } from '../../sandbox/index.ts'
import type { EnvironmentToml, StepToml, TaskToml } from './config.ts'

/**
 * What becomes of tasks that ask for the public internet, which is also the format's default: `refuse` refuses them,
 * `without` runs them without, which is honest only for tasks known not to need it, `open` lets them have it.
 */
export type PublicNetwork = 'refuse' | 'without' | 'open'

const schemaVersions = ['1.0', '1.1', '1.2', '1.3', '1.4']

/** Throws `TASK_UNSUPPORTED`, naming the key and the fix, for what this format knows and this environment cannot do. */
export function requireSupported(toml: TaskToml, file: string, publicNetwork: PublicNetwork): void {
  const version = toml.schema_version ?? toml.version ?? '1.0'
  if (!schemaVersions.includes(version)) {
    throw unsupported(file, 'schema_version', `${version} is not known`, `Use one of ${schemaVersions.join(', ')}.`)
  }
  for (const [i, step] of toml.steps.entries()) requireStep(toml, step, `steps[${i}]`, file)
  if (isShared(toml.verifier) && toml.verifier.environment !== undefined) {
    throw unsupported(
      file,
      'verifier.environment',
      'a verifier in the box of the agent has no environment of its own',
      'Set environment_mode = "separate" under [verifier], or leave verifier.environment out.',
    )
  }
  requireEnvironment(toml.environment, 'environment', file, publicNetwork)
  if (toml.verifier.environment !== undefined) {
    requireEnvironment(toml.verifier.environment, 'verifier.environment', file, publicNetwork)
  }
  for (const phase of ['agent', 'verifier'] as const) {
    const { network_mode, allowed_hosts } = toml[phase]
    networkOf({ network_mode, allowed_hosts, allow_internet: false }, phase, file, publicNetwork)
  }
  for (const [i, hook] of toml.verifier.collect.entries()) {
    requireMain(hook.service, `verifier.collect[${i}].service`, file)
  }
  for (const [i, artifact] of toml.artifacts.entries()) {
    if (typeof artifact !== 'string') requireMain(artifact.service, `artifacts[${i}].service`, file)
  }
}

/** One box, one user and one kind of verification for all steps; the network of a phase may change. */
function requireStep(toml: TaskToml, step: StepToml, at: string, file: string): void {
  const fix = 'Say it for the whole task, or make one task of each step.'
  const { verifier } = step
  requireNext(toml, step, at, file)
  if (verifier.environment !== undefined) {
    throw unsupported(file, `${at}.verifier.environment`, 'steps share the environment of their verifier', fix)
  }
  if (verifier.environment_mode !== undefined && (verifier.environment_mode === 'shared') !== isShared(toml.verifier)) {
    throw unsupported(file, `${at}.verifier.environment_mode`, 'steps are verified like their task', fix)
  }
  for (const phase of ['agent', 'verifier'] as const) {
    const { network_mode, allowed_hosts } = step[phase]
    if (network_mode !== undefined || allowed_hosts !== undefined) {
      throw unsupported(file, `${at}.${phase}.network_mode`, 'steps have the network of their task', fix)
    }
  }
  for (const [i, hook] of verifier.collect.entries()) requireMain(hook.service, `${at}.verifier.collect[${i}]`, file)
  for (const [i, artifact] of step.artifacts.entries()) {
    if (typeof artifact !== 'string') requireMain(artifact.service, `${at}.artifacts[${i}].service`, file)
  }
}

/** Steps are worked on one after the other in one session: what says so is accepted, any other order is refused. */
function requireNext(toml: TaskToml, step: StepToml, at: string, file: string): void {
  const index = toml.steps.indexOf(step)
  const earlier = toml.steps.slice(0, index).map(({ name }) => name)
  const { dependencies: names } = step
  const [last] = earlier.slice(-1)
  const isNext = (last === undefined || names?.includes(last)) && names?.every((name) => earlier.includes(name))
  if (names !== undefined && isNext !== true) {
    const fix = `Write dependencies = ${JSON.stringify(earlier.slice(-1))}, or leave it out.`
    throw unsupported(file, `${at}.dependencies`, 'each step follows the one before it', fix)
  }
  if (step.inherit_prior_session === false && index > 0) {
    const fix = 'Leave it out, or make one task of each step.'
    throw unsupported(file, `${at}.inherit_prior_session`, 'steps share one session', fix)
  }
}

/** The format's own rule: without a mode, a verifier with an environment of its own is separate, any other shared. */
export function isShared(verifier: Pick<TaskToml['verifier'], 'environment_mode' | 'environment'>): boolean {
  return (verifier.environment_mode ?? (verifier.environment === undefined ? 'shared' : 'separate')) === 'shared'
}

function requireEnvironment(e: EnvironmentToml, at: string, file: string, publicNetwork: PublicNetwork): void {
  if (e.os !== undefined && e.os.toLowerCase() !== 'linux') {
    throw unsupported(file, `${at}.os`, `${e.os} boxes do not exist here`, 'Use os = "linux" or leave it out.')
  }
  if ((e.gpus ?? 0) > 0) throw unsupported(file, `${at}.gpus`, 'boxes have no GPU', 'Set gpus = 0.')
  if (e.gpu_types !== undefined && e.gpu_types.length > 0) {
    throw unsupported(file, `${at}.gpu_types`, 'boxes have no GPU', 'Leave gpu_types out.')
  }
  if (e.tpu !== undefined) throw unsupported(file, `${at}.tpu`, 'boxes have no TPU', 'Leave tpu out.')
  if (e.definition !== undefined) {
    throw unsupported(file, `${at}.definition`, 'only a Dockerfile or docker_image is known', 'Leave definition out.')
  }
  if (e.mcp_servers !== undefined && e.mcp_servers.length > 0) {
    throw unsupported(file, `${at}.mcp_servers`, 'MCP servers in the box are not supported', 'Leave mcp_servers out.')
  }
  if (e.skills_dir !== undefined) {
    throw unsupported(file, `${at}.skills_dir`, 'skills are not handed to harnesses', 'Leave skills_dir out.')
  }
  const template = Object.entries(e.env ?? {}).find(([, value]) => value.includes('${'))
  if (template !== undefined) {
    throw unsupported(file, `${at}.env.${template[0]}`, 'values from the host are not read', 'Write the value itself.')
  }
  networkOf(e, at, file, publicNetwork)
}

/** The policy that a part of `task.toml` asks for. Throws `TASK_UNSUPPORTED` for one that cannot be had. */
export function networkOf(
  e: {
    readonly network_mode?: EnvironmentToml['network_mode'] | undefined
    readonly allowed_hosts?: EnvironmentToml['allowed_hosts'] | undefined
    readonly allow_internet?: boolean | undefined
  },
  at: string,
  file: string,
  publicNetwork: PublicNetwork,
): EgressPolicy {
  // Harbor's own rule: without network_mode, allowed_hosts means allowlist, and otherwise the default is public.
  const open = e.allow_internet === false ? 'no-network' : 'public'
  const mode = e.network_mode ?? ((e.allowed_hosts ?? []).length > 0 ? 'allowlist' : open)
  if (mode === 'allowlist') {
    const policy = { allow: e.allowed_hosts ?? [] }
    try {
      parseEgress(policy)
    } catch (error) {
      const what = isPaddockError(error) ? error.message : String(error)
      throw unsupported(file, `${at}.allowed_hosts`, what, 'Write hosts, *.hosts or networks, with :port if needed.')
    }
    return policy
  }
  if (mode === 'public' && publicNetwork === 'refuse') {
    throw unsupported(
      file,
      `${at}.network_mode`,
      'the task asks for the public internet (the default of its format), which is not given unasked',
      'Say --public-network open, or without where the task is known not to need it, or set tasks.publicNetwork in the configuration.',
    )
  }
  return mode === 'public' && publicNetwork === 'open' ? 'open' : 'none'
}

function requireMain(service: string | undefined, place: string, file: string): void {
  if (service === undefined || service === 'main') return
  throw unsupported(file, place, 'a task has one box, no services', 'Use service = "main" or leave it out.')
}

/**
 * Values as the format reads them: `${NAME:-otherwise}` is a value of the host, which is not read here, so that what stands
 * behind it counts. Throws `TASK_UNSUPPORTED` where nothing does.
 */
export function envOf(
  env: Readonly<Record<string, string>> | undefined,
  place: string,
  file: string,
): Record<string, string> {
  const entries = Object.entries(env ?? {}).map(([key, written]): [string, string] => {
    const value = written.replaceAll(/\$\{[A-Za-z_]\w*:-([^}]*)\}/g, '$1')
    if (!/\$\{[A-Za-z_]\w*\}/.test(value)) return [key, value]
    throw unsupported(file, `${place}.${key}`, 'values from the host are not read', 'Write the value itself.')
  })
  return Object.fromEntries(entries)
}

/** The error for a feature that is known and cannot be had. */
export function unsupported(file: string, place: string, what: string, fix: string): PaddockError {
  return new PaddockError('TASK_UNSUPPORTED', `${file}: ${place}: ${what}`, { data: { file, place }, fix })
}
