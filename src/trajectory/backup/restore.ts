import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import { catalogueMigrations } from '../catalogue/index.ts'
import { asStoreError, openForWriting } from '../sqlite/index.ts'
import { homeOf, rememberCatalogue, requireSameLog, storeFiles } from '../store/index.ts'
import { backup, requireEmpty } from './backup.ts'
import { copyToPostgres, forgetRows } from './shared-rows.ts'

/** What `paddock restore` made. */
export interface RestoreReport {
  readonly into: string
}

/**
 * Makes a data directory of a backup: of its folder, or of its `.tar`. With `catalogue`, the URL of a PostgreSQL database, its
 * catalogue goes there, all of it or nothing, and the directory belongs to that one from then on. Throws `NOT_FOUND`, `USAGE`,
 * `STORE_*`, `CATALOGUE_*`.
 */
export async function restore(
  from: string,
  into: string,
  { catalogue = null }: { readonly catalogue?: string | null } = {},
): Promise<RestoreReport> {
  const [source, to] = [resolve(from), resolve(into)]
  await requireEmpty(to)
  const unfinished = join(dirname(to), `.${process.pid}.unfinished-restore`)
  await rm(unfinished, { recursive: true, force: true })
  try {
    if (source.endsWith('.tar')) await unpack(source, unfinished)
    else await backup(source, unfinished)
    requireSameLog(unfinished)
    if (catalogue !== null) await moveRows(unfinished, `${to} on ${hostname()}`, catalogue)
    await rm(to, { recursive: true, force: true })
    await rename(unfinished, to)
    return { into: to }
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    throw asStoreError(error, `The restore of ${source}`)
  }
}

/** What `paddock backup` writes, by its path in the one folder of the archive: databases, journals, and contents by their digest. */
const backupFile =
  /^(?:(?:log|catalogue)\.sqlite(?:-wal|-shm)?|log\.sqlite-journal-\d+|(?:blobs|archive)\/([0-9a-f]{2})\/([0-9a-f]{2})\/\1\2[0-9a-f]{60})$/

/** The size of a header and of the unit that contents are filled up to; two empty ones end an archive. */
const block = 512

/** Unpacks an archive that `paddock backup` wrote: anything else in it could be a credential, or code. */
async function unpack(file: string, into: string): Promise<void> {
  if (!existsSync(file)) throw notBackup('NOT_FOUND', `there is no backup ${file}`)
  const archive = extract()
  const cut = new AbortController()
  const reading = pipeline(createReadStream(file), archive)
  // What is cut off inside of an entry ends neither the entry nor the archive.
  reading.catch((error: Error) => {
    archive.destroy(error)
    cut.abort(error)
  })
  let end = 0
  try {
    for await (const entry of archive) {
      await unpackEntry(entry, { file, into, signal: cut.signal })
      end += block * (1 + Math.ceil((entry.header.size ?? 0) / block))
    }
    await reading
  } catch (error) {
    // Errors of the disk have a system call, those of tar-stream 3 not even a code.
    if (isPaddockError(error) || (error instanceof Error && 'syscall' in error)) throw error
    throw notBackup('USAGE', `${file} is cut off behind ${end} bytes, or is no tar file`)
  }
  if (!(await isWhole(file, end))) throw notBackup('USAGE', `${file} is cut off behind ${end} bytes`)
  const { log, catalogue } = storeFiles(into)
  if (!existsSync(log) || !existsSync(catalogue)) throw notBackup('USAGE', `${file} is not a backup`)
}

type Entry = ReturnType<typeof extract> extends AsyncIterable<infer One> ? One : never

async function unpackEntry(
  entry: Entry,
  { file, into, signal }: { readonly file: string; readonly into: string; readonly signal: AbortSignal },
): Promise<void> {
  const { name, type } = entry.header
  const path = name.slice(name.indexOf('/') + 1)
  if (type !== 'file' || !name.includes('/') || !backupFile.test(path)) {
    throw notBackup('USAGE', `${file} has the entry ${JSON.stringify(name)}, which no backup has`)
  }
  const to = join(into, path)
  if (existsSync(to)) throw notBackup('USAGE', `${file} has the entry ${JSON.stringify(name)} twice`)
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  await pipeline(entry, createWriteStream(to, { flags: 'wx', mode: 0o600 }), { signal })
}

/** Whether the two empty blocks follow that end an archive. */
async function isWhole(path: string, end: number): Promise<boolean> {
  await using file = await open(path, 'r')
  const { size } = await file.stat()
  if (size < end + 2 * block) return false
  const { buffer } = await file.read(Buffer.alloc(2 * block), 0, 2 * block, size - 2 * block)
  return buffer.every((byte) => byte === 0)
}

function notBackup(code: 'NOT_FOUND' | 'USAGE', message: string): PaddockError {
  return new PaddockError(code, message, { fix: 'Give the file or folder that `paddock backup` wrote.' })
}

async function moveRows(directory: string, name: string, url: string): Promise<void> {
  const { Database } = await import('../postgres/index.ts')
  const home = { id: homeOf(directory), name }
  const options = { url, connections: 1, unavailable: 'CATALOGUE_UNAVAILABLE', migrates: true, patienceMs: 0 } as const
  const database = await Database.open(options)
  const own = openForWriting(storeFiles(directory).catalogue, {
    synchronous: 'full',
    migrations: catalogueMigrations,
    now: 0,
  })
  try {
    const id = await database.transaction(async (connection) => {
      await copyToPostgres(own, home, connection)
      const [identity] = await connection.query<{ id: string }>('SELECT id FROM identity')
      return identity?.id ?? ''
    })
    forgetRows(own)
    rememberCatalogue(directory, id)
  } finally {
    own.close()
    await database.close()
  }
}
