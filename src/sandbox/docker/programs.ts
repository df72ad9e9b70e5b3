import type Docker from 'dockerode'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { PaddockError } from '../../core/index.ts'
import type { BundleSpec } from '../contract/index.ts'
import { packFiles } from './archive-in.ts'
import { readArchive } from './archive-out.ts'
import { removeByForce } from './attached.ts'
import { ask } from './daemon.ts'
import type { Images } from './images.ts'
import { containerLabels } from './labels.ts'
import { digestOf, sandboxSource } from './recipe.ts'

const programs = ['supervisor', 'relay', 'tool', 'files'] as const
const flags = '-O2 -static -std=gnu17 -Wall -Wextra'

function programSources() {
  return programs.map((name) => ({ path: `${name}.c`, data: sandboxSource(`${name}/${name}.c`) }))
}

/** What the bundle of this version of the programs is called. */
export function programsVersion(): Pick<BundleSpec, 'name' | 'version'> {
  const sources = programSources().map((source) => source.data)
  return { name: 'programs', version: digestOf([flags, process.arch, ...sources]).slice(0, 16) }
}

/** The bundle with the in-box programs, compiled inside Docker from `sandboxes/`, so that the host needs no compiler. */
export function programsBundle(docker: Docker, images: Images): BundleSpec {
  const sources = programSources()
  return {
    ...programsVersion(),
    build: async (directory, o) => {
      const image = await images.ensure({ kind: 'paddock-base' }, o)
      o.onProgress?.('compiling the in-box programs')
      const lines = programs.map((name) => `gcc ${flags} -s -o /out/${name} /src/${name}.c`)
      const container = await ask(
        'create a container',
        docker.createContainer({
          Image: image.tag,
          Labels: containerLabels('work'),
          User: '0:0',
          Tty: true,
          Entrypoint: ['/bin/sh', '-ec', ['mkdir -p /out', ...lines].join('\n')],
          HostConfig: { NetworkMode: 'none', Memory: 1 << 30 },
        }),
      )
      try {
        const files = sources.map((source) => ({ path: `src/${source.path}`, data: source.data }))
        await ask('copy sources', container.putArchive(packFiles(files, 0, 0), { path: '/' }))
        await ask('start the compiler', container.start())
        const answer: unknown = await ask('wait for the compiler', container.wait())
        const words = await container.logs({ stdout: true, stderr: true })
        if (!isSuccess(answer)) {
          throw new PaddockError('BUNDLE_FAILED', `The in-box programs do not compile: ${words.toString()}`)
        }
        const tar = (await ask('take the programs', container.getArchive({ path: '/out' }))) as Readable
        const { entries } = await readArchive(tar)
        for (const entry of entries) {
          if (entry.type !== 'file') continue
          await writeFile(join(directory, entry.path), entry.data)
          await chmod(join(directory, entry.path), 0o755)
        }
      } finally {
        await removeByForce(container)
      }
    },
  }
}

function isSuccess(answer: unknown): boolean {
  return typeof answer === 'object' && answer !== null && 'StatusCode' in answer && answer.StatusCode === 0
}
