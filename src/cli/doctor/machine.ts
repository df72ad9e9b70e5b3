import { constants } from 'node:fs'
import { access, readFile, stat, statfs } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import { dirname } from 'node:path'
import type { Config } from '../../config/index.ts'
import { isLoopback, isPaddockError } from '../../core/index.ts'
import type { Owner } from '../../trajectory/index.ts'
import { bytes, plural } from '../present/units.ts'
import { listenerTls } from '../tls.ts'
import { archiveFindings } from './archive.ts'
import { blobsFindings } from './blobs.ts'
import { catalogueFindings } from './catalogue.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

const leastFreeBytes = 5e9

/** Node, processors, memory, open files. */
export async function machineFindings(config: Config): Promise<readonly Finding[]> {
  return [
    nodeFinding(process.versions.node),
    supportFinding(process.platform, process.arch),
    ok('machine', `${plural(availableParallelism(), 'core')}, ${bytes(totalmem())} memory`),
    await openFilesFinding(config.proxy.maxInFlight),
    ...watchesFindings(
      await numberIn('/proc/sys/fs/inotify/max_user_instances'),
      await numberIn('/proc/sys/fs/inotify/max_user_watches'),
    ),
  ]
}

/** Data directory, catalogue, object stores and the control listener. */
export async function storeFindings(config: Config): Promise<readonly Finding[]> {
  const { liveOwner } = await import('../../trajectory/index.ts')
  return [
    ...(await directoryFindings(config.store.directory)),
    ...(await catalogueFindings(config.store.catalogue)),
    ...(await blobsFindings(config)),
    ...(await archiveFindings(config)),
    ...(await tlsFindings(config)),
    ...controlFindings(config, liveOwner(config.store.directory)),
  ]
}

/** Certificate and key of the control API, if it names any. */
async function tlsFindings(config: Config): Promise<readonly Finding[]> {
  try {
    await listenerTls(config)
    return []
  } catch (error) {
    if (!isPaddockError(error)) throw error
    return [problem('tls', error.message, error.fix)]
  }
}

/**
 * Where the control API is offered: by the process that owns the data directory, whose configuration nobody has to read for that, else as
 * variables say of the next one. Exported for its test.
 */
export function controlFindings(
  { control, tls }: Pick<Config, 'control' | 'tls'>,
  owner: Pick<Owner, 'pid' | 'listener'> | null,
): readonly Finding[] {
  const listener = owner?.listener ?? null
  if (owner !== null && listener !== null) {
    const where = `process ${owner.pid} offers it at ${listener.tls ? 'https' : 'http'}://${listener.host}:${listener.port}`
    return [
      isLoopback(listener.host) || listener.tls
        ? ok('control', where)
        : warning('control', `${where}: ${readable}`, fix),
    ]
  }
  if (isLoopback(control.host) || tls.cert !== null) return []
  if (tls.plainHttp) return [warning('control', `it would be at ${control.host} in plain HTTP: ${readable}`, fix)]
  return [
    warning(
      'control',
      `it would be at ${control.host} without TLS: \`serve\` and \`coordinator\` refuse to start (PLAIN_HTTP)`,
      `${fix} Or PADDOCK_PLAIN_HTTP=1 says that the network encrypts.`,
    ),
  ]
}

const readable = 'tokens and what was recorded can be read on the way, unless the network encrypts'
const fix =
  'Name PADDOCK_TLS_CERT and PADDOCK_TLS_KEY (`tls.cert` and `tls.key` of the configuration), or keep it on loopback.'

/** Exported for its test: the version decides. */
export function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 19)) return ok('node', version)
  return problem(
    'node',
    `${version} is too old`,
    'Install Node 24, or run Paddock with one of npm: `npx --package node@24 --package paddock-rl paddock`.',
  )
}

/** What is promised of this kind of machine, as docs/guides/plugins.md says it. Exported for its test. */
export function supportFinding(platform: string, processor: string): Finding {
  const what = `${platform} ${processor}`
  if (platform === 'linux' && processor === 'x64') return ok('support', `${what}: everything is tested here`)
  if (platform === 'linux')
    return warning('support', `${what}: should work, not tested`, 'Use Linux x64 where it matters.')
  return warning(
    'support',
    `${what}: proxy, store, export and view should work, not tested; boxes need Linux`,
    'Run boxes in WSL2 or on the Docker daemon of a Linux machine.',
  )
}

/** Each call needs a socket on both sides. */
async function openFilesFinding(maxInFlight: number): Promise<Finding> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1]
  if (soft === undefined) return ok('open files', 'the limit is not known on this system')
  if (soft === 'unlimited') return ok('open files', 'unlimited')
  const needed = 2 * maxInFlight + 256
  if (Number(soft) >= needed) return ok('open files', `${soft} (${needed} needed for ${maxInFlight} calls at once)`)
  return warning(
    'open files',
    `${soft} at most, ${needed} needed for ${maxInFlight} calls at once`,
    `Run \`ulimit -n ${needed}\` before Paddock, or lower proxy.maxInFlight.`,
  )
}

const leastInstances = 512
const leastWatches = 65_536

/** All boxes share these limits of the kernel, and tools in them watch files. Exported for its test. */
export function watchesFindings(instances: number | null, watches: number | null): Finding[] {
  if (instances === null || watches === null) return []
  const short = [
    ...(instances < leastInstances ? [`fs.inotify.max_user_instances=${leastInstances}`] : []),
    ...(watches < leastWatches ? [`fs.inotify.max_user_watches=${leastWatches}`] : []),
  ]
  const what = `${instances} instances, ${watches} watches for all boxes together`
  if (short.length === 0) return [ok('inotify', what)]
  return [warning('inotify', `only ${what}`, `Run \`sysctl -w ${short.join(' ')}\`.`)]
}

async function numberIn(path: string): Promise<number | null> {
  const text = await readFile(path, 'utf8').catch(() => null)
  return text === null ? null : Number(text)
}

async function directoryFindings(directory: string): Promise<Finding[]> {
  const existing = await nearestExisting(directory)
  const writable = await access(existing, constants.W_OK).then(
    () => true,
    () => false,
  )
  const space = await statfs(existing)
  const free = space.bavail * space.bsize
  return [
    !(await stat(existing)).isDirectory()
      ? problem('data', `${existing} is a file, not a data directory`, 'Name a folder, or one to be made, with --data.')
      : writable
        ? ok('data', directory)
        : problem('data', `${existing} is not writable`, 'Choose another directory with --data, or change its owner.'),
    free >= leastFreeBytes
      ? ok('disk', `${bytes(free)} free`)
      : warning('disk', `only ${bytes(free)} free`, `Free ${bytes(leastFreeBytes)}, or choose another --data.`),
  ]
}

async function nearestExisting(path: string): Promise<string> {
  for (let here = path; ; here = dirname(here)) {
    const found = await stat(here).catch(() => null)
    if (found !== null || here === dirname(here)) return here
  }
}
