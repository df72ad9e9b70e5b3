import { access, readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, join, resolve, sep } from 'node:path'
import { z } from 'zod'
import { makeTask, PaddockError, type Task } from '../../core/index.ts'
import { directoryDigest } from '../../reward/index.ts'
import type { LoadOptions } from '../contract.ts'
import { type EnvironmentToml, type StepToml, type TaskToml, taskTomlSchema } from './config.ts'
import type { StepData, TerminalData } from './data.ts'
import { factsOf, type ImageFacts, plain } from './dockerfile.ts'
import { envOf, isShared, networkOf, type PublicNetwork, requireSupported, unsupported } from './support.ts'
import { parseToml } from './toml.ts'

/**
 * Reads one task folder, or every task folder directly below `path`. Throws `TASK_INVALID` / `TASK_UNSUPPORTED` for
 * the first that cannot be used, where nobody is told of each (`onRefused`); `TASK_INVALID` when there is none.
 */
export async function loadTasks(
  path: string,
  o: LoadOptions & { readonly publicNetwork: PublicNetwork },
): Promise<readonly Task[]> {
  const root = resolve(path)
  let refused = 0
  const read = async (folder: string, shown: string): Promise<readonly Task[]> => {
    try {
      return [await loadTask(folder, shown, o.publicNetwork)]
    } catch (error) {
      if (o.onRefused === undefined || o.signal?.aborted === true) throw error
      o.onRefused(basename(folder), error)
      refused += 1
      return []
    }
  }
  if (await isTaskFolder(root)) return read(root, path)
  const entries = await readdir(root, { withFileTypes: true }).catch((cause: unknown) => {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    const what = { ENOTDIR: 'is a file, not a folder of tasks', ENOENT: 'does not exist' }[code]
    const fix = 'Give a folder with task.toml and instruction.md, or one that holds such folders.'
    throw invalid(path, what ?? `cannot be read as a folder of tasks (${code})`, fix, cause)
  })
  const tasks: Task[] = []
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    o.signal?.throwIfAborted()
    const folder = join(root, entry.name)
    if (!entry.isDirectory() || !(await isTaskFolder(folder))) continue
    tasks.push(...(await read(folder, join(path, entry.name))))
  }
  if (tasks.length + refused > 0) return tasks
  throw invalid(path, 'holds no task', 'A task is a folder with task.toml and instruction.md; give it or its parent.')
}

async function isTaskFolder(folder: string): Promise<boolean> {
  return (await exists(join(folder, 'task.toml'))) || (await exists(join(folder, 'instruction.md')))
}

async function loadTask(folder: string, shown: string, publicNetwork: PublicNetwork): Promise<Task> {
  const at = (name: string) => join(shown, name)
  const file = at('task.toml')
  await requireInside(folder, at)
  const text = await readText(join(folder, 'task.toml'), file, 'Every task has a task.toml.')
  const toml = parseToml(text, file, taskTomlSchema)
  requireSupported(toml, file, publicNetwork)
  for (const name of [
    'environment/docker-compose.yaml',
    'environment/docker-compose.yml',
    'tests/docker-compose.yaml',
  ]) {
    if (await exists(join(folder, name))) {
      throw unsupported(at(name), 'services', 'compose files are not supported', 'Put the task into one Dockerfile.')
    }
  }
  if (await exists(join(folder, 'tests/test.bat'))) {
    throw unsupported(at('tests/test.bat'), 'os', 'Windows boxes do not exist here', 'Write tests/test.sh.')
  }
  // The format never shows the instruction of a task of several steps to an agent.
  const instruction = toml.steps.length > 0 ? '' : await instructionOf(folder, at, '.')
  const data = await dataOf(folder, at, toml, publicNetwork)
  return makeTask({
    name: basename(folder),
    environment: 'terminal',
    instruction: instruction === '' ? (data.steps?.map((step) => step.instruction).join('\n\n') ?? '') : instruction,
    split: typeof toml.metadata['split'] === 'string' ? toml.metadata['split'] : 'train',
    data,
    source: folder,
  })
}

/**
 * What is read on this machine, shown to the model or put into a box as a folder lies in the task's own folder: a link may
 * lead about inside of it, not out of it. Links within such folders are put into the box as links, and lead about there.
 */
async function requireInside(folder: string, at: (name: string) => string): Promise<void> {
  const root = await realpath(folder)
  const inStep = (await entriesOf(folder, 'steps')).map(async (step) => [step, ...(await entriesOf(folder, step))])
  const inBuilds = ['environment/Dockerfile', 'tests/Dockerfile', 'tests/test.sh']
  const names = [...(await entriesOf(folder, '.')), ...(await Promise.all(inStep)).flat(), ...inBuilds]
  for (const name of names) {
    const led = await realpath(join(folder, name)).catch(() => null)
    if (led === null || led.startsWith(root + sep)) continue
    throw invalid(at(name), 'is a link that leads out of the task folder', 'Put a copy of the file there.')
  }
}

async function entriesOf(folder: string, below: string): Promise<readonly string[]> {
  const names = await readdir(join(folder, below)).catch(() => [])
  return names.map((name) => join(below, name))
}

async function instructionOf(folder: string, at: (name: string) => string, below: string): Promise<string> {
  const name = join(below, 'instruction.md')
  const text = (await readText(join(folder, name), at(name), 'Say there what to do.')).trim()
  if (text === '') throw invalid(at(name), 'is empty', 'Say there what the agent has to do.')
  return text
}

async function dataOf(
  folder: string,
  at: (name: string) => string,
  toml: TaskToml,
  publicNetwork: PublicNetwork,
): Promise<TerminalData> {
  const isOwn = (phase: 'agent' | 'verifier') =>
    toml[phase].network_mode !== undefined || toml[phase].allowed_hosts !== undefined
  const networkFor = (phase: 'agent' | 'verifier' | 'environment'): TerminalData['agent']['network'] => {
    const own = phase !== 'environment' && isOwn(phase)
    const place = own ? phase : 'environment'
    const policy = networkOf(own ? toml[phase] : toml.environment, place, at('task.toml'), publicNetwork)
    return typeof policy === 'string' ? policy : { allow: [...policy.allow] }
  }
  const dockerfile = await optionalText(join(folder, 'environment/Dockerfile'))
  const agent = boxOf(toml.environment, dockerfile, 'environment', at)
  const facts = toml.environment.docker_image === undefined && dockerfile !== null ? factsOf(dockerfile) : null
  const user = userOf(toml.agent.user, facts, at('environment/Dockerfile'))
  // `agent` of our own base is uid 1000; in another image the name is whoever its files say.
  const isPlain = (one: string | undefined): boolean =>
    one === '1000' || (one === 'agent' && plain(facts?.base ?? '') === 'paddock-base')
  const testsDockerfile = await optionalText(join(folder, 'tests/Dockerfile'))
  const separate = toml.verifier.environment ?? toml.environment
  const shared = isShared(toml.verifier)
  if (shared && facts !== null && facts.volume !== null) {
    const what = `the tests look at a snapshot of the box, which has nothing of ${facts.volume}`
    throw unsupported(at('environment/Dockerfile'), 'VOLUME', what, 'Leave it out, or let the verifier be separate.')
  }
  const ownImage = !shared && (toml.verifier.environment?.docker_image !== undefined || testsDockerfile !== null)
  const verifier = ownImage
    ? boxOf(toml.verifier.environment ?? {}, testsDockerfile, 'tests', at)
    : { ...boxOf({ ...separate, docker_image: toml.environment.docker_image }, dockerfile, 'environment', at) }
  if (!ownImage && toml.steps.length === 0) {
    await readText(join(folder, 'tests/test.sh'), at('tests/test.sh'), 'It writes the reward.')
  }
  const common = {
    workdir: agent.workdir,
    env: { ...verifier.env, ...envOf(toml.verifier.env, 'verifier.env', at('task.toml')) },
    hasTests: !ownImage,
    user,
    isPlain,
  }
  const steps = await Promise.all(toml.steps.map((step) => stepOf(folder, at, toml, step, common)))
  return {
    agent: {
      ...agent,
      network: networkFor('agent'),
      ...(isOwn('agent') ? { setupNetwork: networkFor('environment') } : {}),
      profile: isPlain(user) ? 'user' : 'root',
      user: isPlain(user) ? null : (user ?? null),
      timeoutMs: toml.agent.timeout_sec === undefined ? null : toml.agent.timeout_sec * 1000,
      healthcheck: healthcheckOf(toml.environment.healthcheck) ?? facts?.healthcheck ?? null,
    },
    verifier: {
      ...verifier,
      network: networkFor('verifier'),
      workdir: toml.verifier.environment?.workdir ?? agent.workdir,
      env: common.env,
      user: toml.verifier.user ?? null,
      timeoutMs: toml.verifier.timeout_sec * 1000,
      uploadTests: !ownImage,
      ...(shared ? { shared } : {}),
    },
    ...pathsOf(toml, 'protected', 'protected', at('task.toml')),
    ...pathsOf(toml, 'may_change', 'mayChange', at('task.toml')),
    artifacts: artifactsOf(toml.artifacts, agent.workdir, at('task.toml')),
    collect: hooksOf(toml.verifier.collect, at('task.toml')),
    ...(steps.length === 0 ? {} : { steps, rewardOfSteps: toml.multi_step_reward_strategy ?? 'mean' }),
    solutionEnv: envOf(toml.solution.env, 'solution.env', at('task.toml')),
    digests: {
      environment: await directoryDigest(join(folder, 'environment')),
      tests: await directoryDigest(join(folder, 'tests')),
    },
    metadata: toml.metadata,
  }
}

function hooksOf(hooks: TaskToml['verifier']['collect'], file: string): TerminalData['collect'] {
  return hooks.map(({ command, timeout_sec, user, env }) => ({
    command,
    timeoutMs: timeout_sec * 1000,
    user: user ?? null,
    env: envOf(env, 'verifier.collect.env', file),
  }))
}

interface StepCommon {
  readonly workdir: string | null
  readonly env: Readonly<Record<string, string>>
  readonly hasTests: boolean
  /** Of the task. */
  readonly user: string | undefined
  readonly isPlain: (user: string | undefined) => boolean
}

/** A step with what it leaves out taken from its task. */
async function stepOf(
  folder: string,
  at: (name: string) => string,
  toml: TaskToml,
  step: StepToml,
  common: StepCommon,
): Promise<StepData> {
  const own = join('steps', step.name)
  const instruction = await instructionOf(folder, at, own)
  const file = join(own, 'tests/test.sh')
  if (common.hasTests && !(await exists(join(folder, file))) && !(await exists(join(folder, 'tests/test.sh')))) {
    throw invalid(at(file), 'does not exist', 'It, or tests/test.sh of the task, writes the reward.')
  }
  const user = step.agent.user ?? common.user
  if (common.isPlain(user) !== common.isPlain(common.user)) {
    const fix = 'Let all steps run as the same kind of user.'
    throw unsupported(
      at('task.toml'),
      `steps[${toml.steps.indexOf(step)}].agent.user`,
      'the box belongs to another kind of user',
      fix,
    )
  }
  const agentSeconds = step.agent.timeout_sec ?? toml.agent.timeout_sec
  return {
    name: step.name,
    instruction,
    agent: {
      user: common.isPlain(user) ? null : (user ?? null),
      timeoutMs: agentSeconds === undefined ? null : agentSeconds * 1000,
      healthcheck: healthcheckOf(step.healthcheck),
    },
    verifier: {
      env: { ...common.env, ...envOf(step.verifier.env, `steps.${step.name}.verifier.env`, at('task.toml')) },
      user: step.verifier.user ?? toml.verifier.user ?? null,
      timeoutMs: (step.verifier.timeout_sec ?? toml.verifier.timeout_sec) * 1000,
    },
    artifacts: artifactsOf([...toml.artifacts, ...step.artifacts], common.workdir, at('task.toml')),
    collect: hooksOf([...toml.verifier.collect, ...step.verifier.collect], at('task.toml')),
    minReward: typeof step.min_reward === 'number' ? { reward: step.min_reward } : (step.min_reward ?? {}),
    digest: await directoryDigest(join(folder, own)),
  }
}

function boxOf(
  e: EnvironmentToml,
  dockerfile: string | null,
  directory: 'environment' | 'tests',
  at: (name: string) => string,
): Omit<TerminalData['agent'], 'profile' | 'user' | 'timeoutMs' | 'healthcheck' | 'network'> {
  const common = {
    env: e.env ?? {},
    cpus: e.cpus ?? 1,
    memoryMb: e.memory_mb ?? megabytes(e.memory, at('task.toml'), 'memory') ?? 2048,
    storageMb: e.storage_mb ?? megabytes(e.storage, at('task.toml'), 'storage') ?? 10_240,
  }
  if (e.docker_image !== undefined) {
    const image = { kind: 'reference' as const, reference: e.docker_image }
    return { ...common, image, workdir: workdirOf(e, null) }
  }
  if (dockerfile === null) {
    throw invalid(at(`${directory}/Dockerfile`), 'does not exist', 'Write it, or set docker_image under [environment].')
  }
  const facts = factsOf(dockerfile)
  requireNoEntrypoint(facts, at(`${directory}/Dockerfile`))
  const image = {
    kind: 'dockerfile' as const,
    dockerfile,
    directory,
    ...(e.build_timeout_sec === undefined ? {} : { buildTimeoutMs: e.build_timeout_sec * 1000 }),
  }
  return { ...common, image, workdir: workdirOf(e, facts) }
}

/** Where commands begin: what `task.toml` says, else what the Dockerfile does; null: what the image will say. */
function workdirOf(e: EnvironmentToml, facts: ImageFacts | null): string | null {
  const found = e.workdir ?? facts?.workdir ?? null
  return found?.includes('$') === true ? null : found
}

/** Who commands run as: what `task.toml` says, else what the Dockerfile does. */
function userOf(user: string | undefined, facts: ImageFacts | null, file: string): string | undefined {
  if (user !== undefined || facts === null || facts.user === null) return user
  const [name = '', group] = facts.user.split(':')
  if (name.includes('$') || (group !== undefined && group !== name)) {
    const what = `${facts.user} is not one name or number`
    throw unsupported(file, 'USER', what, 'Write user under [agent], or USER with a name.')
  }
  return name
}

function requireNoEntrypoint(facts: ImageFacts, file: string): void {
  if (!facts.hasEntrypoint) return
  const fix = 'Start what it starts in a healthcheck or in the tests, or write ENTRYPOINT [].'
  throw unsupported(file, 'ENTRYPOINT', 'it would never run: PID 1 of a box is ours', fix)
}

function healthcheckOf(check: EnvironmentToml['healthcheck']): TerminalData['agent']['healthcheck'] {
  if (check === undefined) return null
  return {
    command: check.command,
    intervalMs: check.interval_sec * 1000,
    timeoutMs: check.timeout_sec * 1000,
    startPeriodMs: check.start_period_sec * 1000,
    startIntervalMs: check.start_interval_sec * 1000,
    retries: check.retries,
  }
}

/** `[metadata] protected` and `may_change`: our own additions to the format, in the table that it leaves to everybody. */
function pathsOf(
  toml: TaskToml,
  key: string,
  as: 'protected' | 'mayChange',
  file: string,
): Pick<TerminalData, 'protected' | 'mayChange'> {
  const given = toml.metadata[key]
  if (given === undefined) return {}
  const paths = z.array(z.string().regex(/^\/[^\0]*[^/\0]$/)).safeParse(given)
  if (paths.success) return { [as]: paths.data }
  throw invalid(file, `metadata.${key} is no list of absolute paths`, `Write ${key} = ["/workspace/tests"].`)
}

const neverArtifacts = ['/', '/proc', '/sys', '/dev', '/logs/verifier', '/tests', '/solution', '/.paddock']

function artifactsOf(
  artifacts: TaskToml['artifacts'],
  workdir: string | null,
  file: string,
): TerminalData['artifacts'] {
  const declared = artifacts.map((a) =>
    typeof a === 'string' ? { source: a, exclude: [] } : { source: a.source, exclude: a.exclude ?? [] },
  )
  for (const [i, { source }] of declared.entries()) {
    const clean = source.replace(/\/+$/, '') || '/'
    if (neverArtifacts.some((path) => clean === path || (path !== '/' && clean.startsWith(`${path}/`)))) {
      throw invalid(file, `artifacts[${i}]: ${source} cannot be taken from the agent`, 'List what the agent makes.')
    }
  }
  // The folder of the format's convention always comes along; without any declaration the whole work does.
  const all = declared.length > 0 ? declared : [{ source: workdir ?? '.', exclude: [] }]
  return all.some((a) => a.source === '/logs/artifacts') ? all : [...all, { source: '/logs/artifacts', exclude: [] }]
}

function megabytes(size: string | undefined, file: string, key: string): number | null {
  if (size === undefined) return null
  const found = /^\s*(\d+(?:\.\d+)?)\s*([GMK])\s*$/i.exec(size)
  const scale = { G: 1024, M: 1, K: 1 / 1024 }[found?.[2]?.toUpperCase() ?? '']
  if (found === null || scale === undefined) {
    throw invalid(file, `environment.${key}: ${JSON.stringify(size)} is no size`, `Use ${key}_mb = 2048.`)
  }
  return Math.max(1, Math.trunc(Number(found[1]) * scale))
}

async function readText(path: string, name: string, fix: string): Promise<string> {
  const text = await optionalText(path)
  if (text === null) throw invalid(name, 'does not exist', fix)
  return text
}

async function optionalText(path: string): Promise<string | null> {
  const isFile = await stat(path).then(
    (facts) => facts.isFile(),
    () => false,
  )
  return isFile ? readFile(path, 'utf8') : null
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

function invalid(file: string, what: string, fix: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${file}: ${what}`, { data: { file }, fix, cause })
}
