import type Docker from 'dockerode'
import { statfs } from 'node:fs/promises'
import { isPaddockError } from '../../core/index.ts'
import { z } from 'zod'
import type { SandboxFacts, SandboxProblem } from '../contract/index.ts'
import { Bases } from './bases.ts'
import { inabilities, messageOf, unreachableFix } from './daemon.ts'
import { seesOurFiles } from './near.ts'
import { ownBase } from './recipe.ts'
import type { ImageSources } from './references.ts'

/** The part of `GET /info` and `GET /version` (Docker Engine API) that is read here. */
const infoShape = z.object({
  CgroupVersion: z.string().optional(),
  Driver: z.string().optional(),
  NCPU: z.number().default(0),
  MemTotal: z.number().default(0),
  DockerRootDir: z.string().default('/var/lib/docker'),
  PidsLimit: z.boolean().optional(),
  MemoryLimit: z.boolean().optional(),
  SecurityOptions: z.array(z.string()).nullish(),
  OSType: z.string().default('linux'),
  SystemTime: z.string().optional(),
})
const versionShape = z.object({ Version: z.string(), ApiVersion: z.string() })

const diskWarningBytes = 5 * 2 ** 30
/** Docker's default pools hold about 31 networks of bridge type (moby, `ipamutils`); Paddock makes none. */
const manyNetworks = 28
const clockSkewMs = 5000

/** Asks the daemon who it is, and whether it has the container runtime. Never throws. */
export async function probeDaemon(
  docker: Docker,
  runtime: string | null,
  sources: ImageSources,
): Promise<SandboxFacts> {
  try {
    const version = versionShape.parse(await docker.version())
    const info = infoShape.parse(await docker.info())
    const askedAt = Date.now()
    const images = (await docker.listImages()).map(({ Id }) => Id)
    const isNear = await seesOurFiles(docker, images)
    const diskFreeBytes = isNear === false ? null : await freeBytes(info.DockerRootDir)
    const networks = (await docker.listNetworks()).filter(({ Driver }) => Driver === 'bridge').length
    return {
      reachable: true,
      version: version.Version,
      apiVersion: version.ApiVersion,
      cgroup: info.CgroupVersion === '1' ? 'v1' : info.CgroupVersion === '2' ? 'v2' : 'unknown',
      storageDriver: info.Driver ?? null,
      cpus: info.NCPU,
      memoryBytes: info.MemTotal,
      diskFreeBytes,
      modelPath: isNear === null ? null : isNear ? 'socket' : 'stream',
      images: await sourceLines(new Bases(docker, sources)),
      problems: [
        ...(await inabilities(docker, runtime)),
        ...problemsOf(info, version.ApiVersion, diskFreeBytes),
        ...sharedProblems({ networks, daemonTime: info.SystemTime ?? null, now: askedAt }),
      ],
    }
  } catch (error) {
    return unreachable(error)
  }
}

/** Where images of others come from, as far as it is configured. */
async function sourceLines(bases: Bases): Promise<readonly string[]> {
  const { map, mirrors } = bases.sources
  const stand = Object.entries(map).map(async ([name, stands]) => {
    const found = ownBase(stands) === null ? await bases.found(stands) : { id: 'made here' }
    return `${stands} stands for ${name} (${found?.id.slice(0, 19) ?? 'not on this machine: it will be pulled'})`
  })
  return [...(await Promise.all(stand)), ...mirrors.map((mirror) => `${mirror} is asked before Docker Hub`)]
}

function unreachable(error: unknown): SandboxFacts {
  const why = messageOf(error)
  const own = isPaddockError(error) ? error.fix : unreachableFix(error)
  const problem: SandboxProblem = {
    code: /EACCES|EPERM/.test(why) ? 'docker_denied' : 'docker_unreachable',
    what: isPaddockError(error) ? why.replace(/\.$/, '') : `The Docker daemon cannot be reached: ${why}`,
    fix: own || 'Install Docker and start it (`systemctl start docker`, or `dockerd` as root).',
    weight: 'fatal',
  }
  return {
    reachable: false,
    version: null,
    apiVersion: null,
    cgroup: 'unknown',
    storageDriver: null,
    cpus: 0,
    memoryBytes: 0,
    diskFreeBytes: null,
    modelPath: null,
    images: [],
    problems: [problem],
  }
}

function problemsOf(info: z.infer<typeof infoShape>, api: string, disk: number | null): SandboxProblem[] {
  const found: SandboxProblem[] = []
  const add = (weight: SandboxProblem['weight'], code: string, what: string, fix: string): void => {
    found.push({ code, what, fix, weight })
  }
  if (info.OSType !== 'linux') add('fatal', 'not_linux', 'The daemon runs no Linux containers.', 'Use a Linux daemon.')
  if (Number(api.split('.')[1] ?? 0) < 41 && api.startsWith('1.')) {
    add('fatal', 'docker_old', `The daemon speaks API ${api}.`, 'Update Docker to 20.10 or newer.')
  }
  if (info.MemoryLimit === false) {
    add('fatal', 'no_memory_limit', 'The kernel cannot limit memory.', 'Enable the memory cgroup.')
  }
  if (info.PidsLimit === false) {
    add('fatal', 'no_pids_limit', 'The kernel cannot limit processes.', 'Enable the pids cgroup.')
  }
  if (!(info.SecurityOptions ?? []).some((option) => option.includes('name=seccomp'))) {
    add('warning', 'no_seccomp', 'The daemon runs without seccomp.', 'Use a daemon built with seccomp.')
  }
  if (disk !== null && disk < diskWarningBytes) {
    const gib = (disk / 2 ** 30).toFixed(1)
    add(
      'warning',
      'disk_low',
      `Only ${gib} GiB are free below ${info.DockerRootDir}.`,
      'Free space, or run `paddock gc`.',
    )
  }
  return found
}

/** What others of the daemon's users would notice first. Exported for its test. */
export function sharedProblems(o: {
  readonly networks: number
  readonly daemonTime: string | null
  readonly now: number
}): SandboxProblem[] {
  const found: SandboxProblem[] = []
  if (o.networks >= manyNetworks) {
    found.push({
      code: 'address_pools',
      what: `The daemon has ${o.networks} networks; its default address pools hold about 31. Paddock needs none of its own.`,
      fix: 'Remove unused ones (`docker network prune`), or set default-address-pools in daemon.json.',
      weight: 'warning',
    })
  }
  const skewMs = o.daemonTime === null ? 0 : Math.abs(Date.parse(o.daemonTime) - o.now)
  if (skewMs > clockSkewMs) {
    found.push({
      code: 'clock',
      what: `The daemon's clock differs from ours by ${Math.round(skewMs / 1000)} s.`,
      fix: 'Synchronise the clocks of both machines (NTP).',
      weight: 'warning',
    })
  }
  return found
}

async function freeBytes(directory: string): Promise<number | null> {
  try {
    const facts = await statfs(directory)
    return facts.bavail * facts.bsize
  } catch {
    return null
  }
}
