import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { PaddockError } from '../../core/index.ts'
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

/** The files of the one folder that a backup's archive has. */
async function unpack(file: string, into: string): Promise<void> {
  if (!existsSync(file))
    throw new PaddockError('NOT_FOUND', `there is no backup ${file}`, {
      fix: 'Give the file or folder that `paddock backup` wrote.',
    })
  const archive = extract()
  const reading = pipeline(createReadStream(file), archive)
  // Told below: it ends with the archive.
  reading.catch(() => {})
  for await (const entry of archive) {
    const [, ...inside] = entry.header.name.split('/')
    if (entry.header.type !== 'file' || inside.length === 0 || inside.some((part) => part === '' || part === '..')) {
      throw new PaddockError('USAGE', `${file} has the entry ${entry.header.name}, which no backup has`, {
        fix: 'Give the file or folder that `paddock backup` wrote.',
      })
    }
    const path = join(into, ...inside)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await pipeline(entry, createWriteStream(path, { flags: 'wx', mode: 0o600 }))
  }
  await reading
  const { log, catalogue } = storeFiles(into)
  if (!existsSync(log) || !existsSync(catalogue)) {
    throw new PaddockError('USAGE', `${file} is not a backup`, {
      fix: 'Give the file or folder that `paddock backup` wrote.',
    })
  }
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
