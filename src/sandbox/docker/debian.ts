import type Docker from 'dockerode'
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { PaddockError } from '../../core/index.ts'
import type { ImageOptions } from '../contract/index.ts'
import type { Bases } from './bases.ts'
import { ask, messageOf } from './daemon.ts'
import { ownedWorkDirectory } from './host-dirs.ts'
import { follow } from './progress.ts'
import { debianReference, debianSuite } from './recipe.ts'

/** Makes the image `tag` of a plain Debian: as the map says, pulled where a registry or mirror answers, else made on this machine. */
export async function makeDebian(docker: Docker, bases: Bases, tag: string, o: ImageOptions): Promise<void> {
  try {
    const base = await bases.ensure(debianReference, o)
    const [repo = tag, version = 'latest'] = tag.split(':')
    await ask('tag an image', docker.getImage(base.id).tag({ repo, tag: version }), 'IMAGE_BUILD_FAILED')
  } catch (error) {
    o.signal?.throwIfAborted()
    o.onProgress?.(`no registry (${messageOf(error)}); making Debian with debootstrap`)
    await bootstrap(docker, tag, o)
  }
}

/** Debian from the package mirror that this host itself uses. Needs root and the program `debootstrap`. */
async function bootstrap(docker: Docker, tag: string, o: ImageOptions): Promise<void> {
  const mirror = hostMirror()
  if (mirror === null || process.getuid?.() !== 0 || !existsSync('/usr/sbin/debootstrap')) {
    throw new PaddockError('IMAGE_MISSING', 'The Debian base image can be neither pulled nor made here.', {
      fix: 'Make a container registry reachable, or run as root on Debian with `apt-get install debootstrap`.',
    })
  }
  const work = ownedWorkDirectory()
  try {
    const root = join(work.path, 'root')
    const include = '--include=ca-certificates'
    await run('setpriv', [...confined, 'debootstrap', '--variant=minbase', include, debianSuite, root, mirror], o)
    o.onProgress?.('importing the base image')
    const tar = spawn('tar', ['-C', root, '--numeric-owner', ...excluded.map((p) => `--exclude=${p}`), '-c', '.'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [repo, version] = tag.split(':')
    const body = tar.stdout.pipe(new PassThrough())
    const stream = await ask('import an image', docker.importImage(body, { repo, tag: version }), 'IMAGE_BUILD_FAILED')
    await follow(stream, () => undefined)
  } finally {
    work.remove()
  }
}

/**
 * In a process and mount namespace of its own that ends when Paddock does, so that an interrupted debootstrap leaves
 * neither a process nor the mounts it makes below its target (setpriv(1), unshare(1)).
 */
const confined = ['--pdeathsig', 'KILL', 'unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']

const excluded = ['./var/cache/apt/archives/*.deb', './var/lib/apt/lists/*', './var/log/*.log', './dev/*', './proc/*']

/** The first Debian mirror of the host's own package sources (sources.list(5), both forms), or null. */
export function hostMirror(etc = '/etc/apt'): string | null {
  const files = [
    join(etc, 'sources.list'),
    ...list(join(etc, 'sources.list.d')).map((f) => join(etc, 'sources.list.d', f)),
  ]
  const texts = files.filter((file) => existsSync(file)).map((file) => readFileSync(file, 'utf8'))
  const urls = texts.flatMap((text) => [
    ...[...text.matchAll(/^URIs:\s*(\S+)/gim)].map((m) => m[1]),
    ...[...text.matchAll(/^deb\s+(?:\[[^\]]*\]\s+)?(\S+)/gim)].map((m) => m[1]),
  ])
  return urls.find((url) => url !== undefined && /\/debian\/?$/.test(url)) ?? null
}

function list(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}

/** Runs a program of the host to its end. Throws `IMAGE_BUILD_FAILED` with its last lines. */
function run(program: string, args: readonly string[], o: ImageOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], ...(o.signal && { signal: o.signal }) })
    const last: string[] = []
    createInterface(child.stdout).on('line', (line) => {
      last.push(line)
      if (last.length > 20) last.shift()
      o.onProgress?.(line)
    })
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve()
      else reject(new PaddockError('IMAGE_BUILD_FAILED', `${program} ended with ${code}: ${last.join('\n')}`))
    })
  })
}
