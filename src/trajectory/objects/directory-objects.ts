import { randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Digest, PaddockError, sha256 } from '../../core/index.ts'
import type { ListedObject, Objects } from './contract.ts'
import { kinds, type ObjectsKind } from './kinds.ts'

/**
 * Objects in a folder of a directory that machines share: `<directory>/<folder>/<2 hex>/<digest>`, each written beside, synced and
 * renamed. The folder is made once, elsewhere: a directory that is not mounted does not have it, and takes nothing. Throws
 * `BLOBS_UNAVAILABLE`, `ARCHIVE_UNAVAILABLE` for that and whatever else the file system refuses.
 */
export class DirectoryObjects implements Objects {
  readonly #folder: string
  readonly #kind: (typeof kinds)[ObjectsKind]

  constructor({
    directory,
    folder,
    of,
  }: {
    readonly directory: string
    readonly folder: string
    readonly of: ObjectsKind
  }) {
    this.#kind = kinds[of]
    this.#folder = join(directory, folder)
  }

  keyOf(digest: Digest): string {
    if (!/^[0-9a-f]{64}$/.test(digest)) throw new PaddockError('NOT_FOUND', `${digest} is no SHA-256`)
    return join(this.#folder, digest.slice(0, 2), digest)
  }

  async put(digest: Digest, content: Uint8Array): Promise<void> {
    const path = this.keyOf(digest)
    const unfinished = join(dirname(path), `.${randomUUID()}.tmp`)
    await this.#asked(async () => {
      await mkdir(dirname(path), { mode: 0o700 }).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error
      })
      try {
        await using file = await open(unfinished, 'wx', 0o600)
        await file.writeFile(content)
        await file.sync()
        await rename(unfinished, path)
      } catch (error) {
        await rm(unfinished, { force: true })
        throw error
      }
      for (const changed of [dirname(path), this.#folder]) await sync(changed)
    })
  }

  async get(digest: Digest): Promise<Uint8Array | null> {
    const path = this.keyOf(digest)
    const content = await this.#orNone(() => readFile(path))
    if (content !== null && sha256(content) !== digest) {
      throw new PaddockError('STORE_CORRUPT', `${path} does not have its digest`)
    }
    return content
  }

  async size(digest: Digest): Promise<number | null> {
    const found = await this.#orNone(() => stat(this.keyOf(digest)))
    return found?.size ?? null
  }

  async *list(): AsyncIterable<ListedObject> {
    for (const shard of (await this.#asked(() => readdir(this.#folder))).toSorted()) {
      if (!/^[0-9a-f]{2}$/.test(shard)) continue
      for (const digest of (await this.#asked(() => readdir(join(this.#folder, shard)))).toSorted()) {
        if (!/^[0-9a-f]{64}$/.test(digest)) continue
        const found = await this.#orNone(() => stat(this.keyOf(digest)))
        if (found !== null) yield { digest, sizeBytes: found.size, at: found.mtimeMs }
      }
    }
  }

  async remove(digest: Digest): Promise<void> {
    await this.#asked(() => rm(this.keyOf(digest), { force: true }))
  }

  async probe(): Promise<void> {
    await this.#asked(() => readdir(this.#folder))
  }

  /** Null: there is none, in a folder that is there. */
  async #orNone<T>(ask: () => Promise<T>): Promise<T | null> {
    return this.#asked(async () => {
      try {
        return await ask()
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw error
        await stat(this.#folder)
        return null
      }
    })
  }

  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      const why = codeOf(error) === 'ENOENT' ? 'is not there: is it mounted?' : `cannot be used: ${codeOf(error)}`
      const what = `the directory of the ${this.#kind.called}, ${this.#folder}, ${why}`
      throw new PaddockError(this.#kind.unavailable, what, { cause: error })
    }
  }
}

async function sync(path: string): Promise<void> {
  await using directory: FileHandle = await open(path, 'r')
  await directory.sync()
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
