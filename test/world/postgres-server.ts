/** A PostgreSQL of a test's own: Debian's programs, an unprivileged user, a socket in a temporary folder, no port. */
import { execFile, execFileSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'

const run = promisify(execFile)

export interface PostgresServer {
  readonly version: string
  /** A fresh, empty database. */
  database(): Promise<string>
  /** `fast` ends sessions and their transactions, `immediate` is as a power cut. Ends when it takes connections again. */
  restart(how: 'fast' | 'immediate'): Promise<void>
  stop(): Promise<void>
}

/** Starts it with everything durable. Throws with what to install where there is no PostgreSQL. */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
  const programs = programFolder()
  const owner = unprivileged()
  const folder = mkdtempSync(join(tmpdir(), 'paddock-postgres-'))
  if (owner !== null) chownSync(folder, owner.uid, owner.gid)
  const data = join(folder, 'data')
  const as = { ...owner, cwd: folder }
  const program = (name: string, args: readonly string[]): Promise<unknown> => run(join(programs, name), args, as)
  const given = { listen_addresses: '', unix_socket_directories: folder, max_connections: '100', ...settings }
  const options = Object.entries(given).map(([name, value]) => `-c ${name}='${value}'`)
  const control = (...args: string[]): Promise<unknown> =>
    program('pg_ctl', ['-D', data, '-l', join(folder, 'log'), '-o', options.join(' '), '-w', ...args])
  const url = (database: string): string => `postgres://paddock@/${database}?host=${encodeURIComponent(folder)}`
  try {
    await program('initdb', ['-D', data, '-U', 'paddock', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'])
    await control('start')
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  let count = 0
  const { stdout } = await run(join(programs, 'postgres'), ['--version'])
  return {
    version: stdout.trim(),
    database: async () => {
      count += 1
      const client = new pg.Client({ connectionString: url('postgres') })
      await client.connect()
      try {
        await client.query(`CREATE DATABASE queue_${count}`)
      } finally {
        await client.end()
      }
      return url(`queue_${count}`)
    },
    restart: async (how) => {
      await control('-m', how, 'restart')
    },
    stop: async () => {
      await control('-m', 'immediate', 'stop')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Debian keeps them out of the path, by version. */
function programFolder(): string {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).map(Number) : []
  const found = versions
    .toSorted((a, b) => b - a)
    .map((version) => join(root, String(version), 'bin'))
    .find((folder) => existsSync(join(folder, 'initdb')))
  if (found === undefined) throw new Error('There is no PostgreSQL here. Fix: sh scripts/machine world --yes')
  return found
}

/** PostgreSQL does not run as root. Debian's package brings a user of its own. */
function unprivileged(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
}
