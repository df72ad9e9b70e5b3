import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Digest, PaddockError, sha256 } from '../../core/index.ts'
import type { Blobs } from '../contract/index.ts'

/** Reads of a blob directory; safe beside its owner. */
export class DirectoryBlobReader implements Pick<Blobs, 'get' | 'has' | 'list'> {
  protected readonly directory: string

  constructor(directory: string) {
    this.directory = directory
  }

  async get(digest: Digest): Promise<Uint8Array> {
    const path = this.path(digest)
    const content = await readFile(path).catch((error: unknown) => {
      if (isMissing(error)) throw new PaddockError('NOT_FOUND', `there is no blob ${digest}`, { cause: error })
      throw error
    })
    if (sha256(content) !== digest) {
      throw new PaddockError('STORE_CORRUPT', `blob ${digest} does not have its digest`, { data: { path } })
    }
    return content
  }

  async has(digest: Digest): Promise<boolean> {
    return (await this.#size(digest)) !== null
  }

  /** In order of digest. Unfinished files are left out. */
  async *list(): AsyncIterable<{ readonly digest: Digest; readonly sizeBytes: number }> {
    for (const outer of await names(this.directory, /^[0-9a-f]{2}$/)) {
      for (const inner of await names(join(this.directory, outer), /^[0-9a-f]{2}$/)) {
        for (const digest of await names(join(this.directory, outer, inner), /^[0-9a-f]{64}$/)) {
          const sizeBytes = await this.#size(digest)
          if (sizeBytes !== null) yield { digest, sizeBytes }
        }
      }
    }
  }

  protected path(digest: Digest): string {
    if (!/^[0-9a-f]{64}$/.test(digest)) throw new PaddockError('NOT_FOUND', `${digest} is no SHA-256`)
    return join(this.directory, digest.slice(0, 2), digest.slice(2, 4), digest)
  }

  async #size(digest: Digest): Promise<number | null> {
    try {
      return (await stat(this.path(digest))).size
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }
}

/**
 * Content by hash in a directory: written beside, synced, renamed, its directory synced. A name that exists is whole,
 * and what `put` has resolved survives power loss.
 */
export class DirectoryBlobs extends DirectoryBlobReader implements Blobs {
  async put(content: Uint8Array): Promise<Digest> {
    const digest = createHash('sha256').update(content).digest('hex')
    if (await this.has(digest)) return digest
    const path = this.path(digest)
    const folder = dirname(path)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const unfinished = join(folder, `.${randomUUID()}.tmp`)
    try {
      const file = await open(unfinished, 'wx', 0o600)
      try {
        await file.writeFile(content)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(unfinished, path)
    } catch (error) {
      await rm(unfinished, { force: true })
      throw error
    }
    for (const changed of [folder, dirname(folder), this.directory]) await syncDirectory(changed)
    return digest
  }

  /** Of what is kept elsewhere. */
  async remove(digest: Digest): Promise<void> {
    await rm(this.path(digest), { force: true })
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

async function names(directory: string, shape: RegExp): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).filter((name) => shape.test(name)).toSorted()
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
