import dockerignore from '@balena/dockerignore'
import { readFileSync, readlinkSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Readable } from 'node:stream'
import { PaddockError, sha256 } from '../../core/index.ts'
import type { ContextFile, ImageOptions } from '../contract/index.ts'
import { readNpmFile } from '../npm.ts'
import { packFiles, packTree, requireInside } from './archive-in.ts'

/** Larger contexts are a mistake more often than a wish. */
const maxContextBytes = 512 << 20

/** A build context with its Dockerfile. */
export interface BuildContext {
  readonly digest: string
  /** Where the Dockerfile lies in it. */
  readonly dockerfile: string
  /** Throws `BUNDLE_FAILED` when a file of npm cannot be had, and the signal's reason. */
  pack(dockerfile: string, o: ImageOptions): Promise<Readable>
}

const ofMemory = '.paddock.Dockerfile'

/** Reads a directory (or takes files of memory) and names it by content: paths, modes, bytes, link targets. */
export async function buildContext(source: string | readonly ContextFile[] | undefined): Promise<BuildContext> {
  if (typeof source === 'string') return directoryContext(source)
  const files = source ?? []
  for (const file of files) requireInside(file.path)
  const lines = files.map(nameOf).sort()
  return {
    digest: sha256(lines.join('\n')),
    dockerfile: ofMemory,
    pack: async (dockerfile, o) => {
      const known = await Promise.all(
        files.map(async (file) => {
          if ('data' in file) return file
          const { path } = file
          return { path, data: 'npm' in file ? await readNpmFile(file.npm, o) : await readFile(file.file) }
        }),
      )
      return packFiles([...known, { path: ofMemory, data: dockerfile }], 0, 0)
    },
  }
}

// An exact version of a package never changes: the registry's integrity hash is checked when it is fetched.
function nameOf(file: ContextFile): string {
  if ('data' in file) return `${file.path} ${(file.mode ?? 0o644).toString(8)} ${sha256(file.data)}`
  if ('npm' in file) return `${file.path} npm ${file.npm.package}@${file.npm.version} ${file.npm.file}`
  return `${file.path} 644 ${file.sha256}`
}

/** A directory as `docker build` sends it: without what its `.dockerignore` names. */
async function directoryContext(directory: string): Promise<BuildContext> {
  const isIgnored = await ignoredIn(directory)
  const lines: string[] = []
  let bytes = 0
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const name = relative(directory, path)
    if (isIgnored(name)) continue
    if (entry.isSymbolicLink()) lines.push(`/${name} -> ${readlinkSync(path)}`)
    else if (entry.isFile()) {
      const facts = await stat(path)
      bytes += facts.size
      if (bytes > maxContextBytes) {
        throw new PaddockError('IMAGE_BUILD_FAILED', `The build context ${directory} is larger than 512 MiB.`, {
          fix: 'Keep only what the image needs beside the Dockerfile, or name the rest in .dockerignore.',
        })
      }
      lines.push(`/${name} ${(facts.mode & 0o7777).toString(8)} ${sha256(readFileSync(path))}`)
    } else lines.push(`/${name}/`)
  }
  return {
    digest: sha256(lines.sort().join('\n')),
    dockerfile: 'Dockerfile',
    pack: async (dockerfile) =>
      packTree({ fromDirectory: directory, uid: 0, gid: 0 }, 0, 0, {
        extra: [{ path: 'Dockerfile', data: dockerfile }],
        without: (name) => name === 'Dockerfile' || isIgnored(name),
      }),
  }
}

/**
 * What a `.dockerignore` names, one that lies beside the Dockerfile under its name before that of the directory. The daemon
 * needs the Dockerfile and the `.dockerignore` in any case, and takes them out itself where they are named.
 */
async function ignoredIn(directory: string): Promise<(name: string) => boolean> {
  const [own, common] = await Promise.all(
    ['Dockerfile.dockerignore', '.dockerignore'].map((name) =>
      readFile(join(directory, name), 'utf8').catch(() => null),
    ),
  )
  const rules = own ?? common ?? null
  if (rules === null) return () => false
  const matcher = dockerignore.default().add(rules)
  return (name) => name !== '.dockerignore' && matcher.ignores(name)
}
