import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { type Digest, isOwnerAlive, makeFolder, newId, PaddockError, thisOwner } from '../../core/index.ts'
import type { ExportSink, SinkFile } from './contract.ts'

/** A finished file of an export. */
export interface WrittenFile {
  readonly name: string
  readonly sizeBytes: number
  readonly sha256: Digest
}

/**
 * A directory that appears whole or not at all: files are written in a hidden sibling, synced, and the sibling is
 * renamed at the end. What a killed process left behind is removed by the next export to the same place.
 */
export interface DirectorySink extends ExportSink, AsyncDisposable {
  /** Writes a file of the directory `media`, once. */
  medium(name: string, bytes: Uint8Array): Promise<void>
  /** How many media there are. */
  readonly media: { readonly files: number; readonly sizeBytes: number }
  /** Closes and syncs all files. */
  seal(): Promise<readonly WrittenFile[]>
  /** Writes one more file after {@link seal}, for the manifest. */
  add(name: string, content: string): Promise<void>
  /** Renames the directory into its place. Without it, disposal removes everything. */
  publish(): Promise<void>
}

interface OpenFile extends SinkFile {
  readonly name: string
  close(): Promise<WrittenFile>
}

/**
 * Opens a sink for `out`. Throws `EXPORT_REFUSED` when `out` holds something already, unless `replace` is true and
 * it is an earlier export (it has a manifest).
 */
export async function directorySink(
  out: string,
  files: readonly string[],
  options: { replace: boolean; manifest: string },
): Promise<DirectorySink> {
  const target = resolve(out)
  const present = await entries(target)
  if (present !== null && present.length > 0 && !(options.replace && present.includes(options.manifest))) {
    throw new PaddockError('EXPORT_REFUSED', `${target} is not empty`, {
      fix: options.replace
        ? 'It is not an earlier export (it has no manifest.json), so it is left alone: give another --out.'
        : present.includes(options.manifest)
          ? 'Add `--replace` to replace the earlier export, or give another --out.'
          : 'Give another --out: a directory that is empty or does not exist yet.',
    })
  }
  const parent = dirname(target)
  const prefix = `.${basename(target)}.partial-`
  await makeFolder(parent)
  await removeLeftovers(parent, prefix, present !== null)
  const partial = join(parent, `${prefix}${thisOwner().replaceAll(':', '_')}~${newId()}`)
  await mkdir(partial)
  const opened = new Map<string, OpenFile>()
  const media = new Map<string, number>()
  let published = false

  return {
    async open(name) {
      if (!files.includes(name)) {
        throw new PaddockError('EXPORTER_INVALID', `File ${JSON.stringify(name)} is not declared`, {
          data: { declared: files },
        })
      }
      if (opened.has(name)) throw new PaddockError('EXPORTER_INVALID', `File ${JSON.stringify(name)} is opened twice`)
      const file = hashedFile(name, await open(join(partial, name), 'wx'))
      opened.set(name, file)
      return file
    },
    get media() {
      return { files: media.size, sizeBytes: [...media.values()].reduce((sum, size) => sum + size, 0) }
    },
    async medium(name, bytes) {
      if (media.has(name)) return
      media.set(name, bytes.byteLength)
      await mkdir(dirname(join(partial, name)), { recursive: true })
      await writeFile(join(partial, name), bytes, { flag: 'wx', flush: true })
    },
    async seal() {
      const missing = files.filter((name) => !opened.has(name))
      if (missing.length > 0) {
        throw new PaddockError('EXPORTER_INVALID', `The exporter did not write ${missing.join(', ')}`)
      }
      const written: WrittenFile[] = []
      for (const file of opened.values()) written.push(await file.close())
      return written
    },
    async add(name, content) {
      const file = hashedFile(name, await open(join(partial, name), 'wx'))
      await file.write(content)
      await file.close()
    },
    async publish() {
      // rename(2) replaces an empty directory, never a full one: an earlier export is moved aside first.
      const aside = `${partial}-old`
      if (present !== null && present.length > 0) await rename(target, aside)
      await rename(partial, target)
      published = true
      await rm(aside, { recursive: true, force: true })
    },
    async [Symbol.asyncDispose]() {
      if (published) return
      for (const file of opened.values()) await file.close().catch(() => undefined)
      await rm(partial, { recursive: true, force: true })
    },
  }
}

function hashedFile(name: string, handle: FileHandle): OpenFile {
  const hash = createHash('sha256')
  let sizeBytes = 0
  let done: Promise<WrittenFile> | null = null
  return {
    name,
    get sizeBytes() {
      return sizeBytes
    },
    async write(chunk) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      hash.update(bytes)
      sizeBytes += bytes.byteLength
      await handle.appendFile(bytes)
    },
    close() {
      done ??= (async () => {
        try {
          await handle.sync()
        } finally {
          await handle.close()
        }
        return { name, sizeBytes, sha256: hash.digest('hex') }
      })()
      return done
    },
  }
}

async function entries(directory: string): Promise<readonly string[] | null> {
  try {
    return await readdir(directory)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

async function removeLeftovers(parent: string, prefix: string, targetExists: boolean): Promise<void> {
  for (const entry of await readdir(parent)) {
    if (!entry.startsWith(prefix)) continue
    // Killed between two renames, the earlier export lives on only here.
    if (entry.endsWith('-old') && !targetExists) continue
    const [owner = ''] = entry.slice(prefix.length).split('~')
    if (!isOwnerAlive(owner.replaceAll('_', ':'))) {
      await rm(join(parent, entry), { recursive: true, force: true })
    }
  }
}
