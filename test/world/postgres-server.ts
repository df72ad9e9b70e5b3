/** A PostgreSQL of a test's own: Debian's programs, an unprivileged user, a socket in a temporary folder, no port. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import pg from 'pg'

const run = promisify(execFile)
type Row = Readonly<Record<string, unknown>>

export interface PostgresServer {
  readonly version: string
  /** A fresh, empty database. */
  database(): Promise<string>
  /** `fast` ends sessions and their transactions, `immediate` is as a power cut. Ends when it takes connections again. */
  restart(how: 'fast' | 'immediate'): Promise<void>
  /** A second server that has what this one has, and follows it. `synchronous`: nothing is committed before it is there too. */
  follow(o: { readonly synchronous: boolean }): Promise<Standby>
  /** PgBouncer in front of it, with `settings` and else its own defaults: its URL of a database. */
  pooler(settings: Readonly<Record<string, string>>): Promise<(database: string) => string>
  stop(): Promise<void>
}

export interface Standby {
  /** It gets all that was committed until now, and hears of nothing any more. */
  cutOff(): Promise<void>
  /** The first server is killed as by a power cut, and this one takes its place, under the same URLs. */
  promote(): Promise<void>
}

/** Starts it with everything durable. Throws with what to install where there is no PostgreSQL. */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
  const programs = programFolder()
  const owner = unprivileged()
  const folder = mkdtempSync(join(tmpdir(), 'paddock-postgres-'))
  if (owner !== null) chownSync(folder, owner.uid, owner.gid)
  const as = { ...owner, cwd: folder }
  const program = (name: string, args: readonly string[]): Promise<unknown> => run(join(programs, name), args, as)
  const instance = (name: string) => new Instance(program, join(folder, name), settings)
  const first = instance('first')
  // Clients find whichever server is the one now.
  const now = join(folder, 'now')
  const stands = (name: string): void => {
    symlinkSync(join(folder, name), `${now}.new`)
    renameSync(`${now}.new`, now)
  }
  const url = (database: string, socket = now): string =>
    `postgres://paddock@/${database}?host=${encodeURIComponent(socket)}`
  /** Rows of the last of them. */
  const ask = async (socket: string, ...statements: readonly string[]): Promise<readonly Row[]> => {
    const client = new pg.Client({ connectionString: url('postgres', socket) })
    await client.connect()
    try {
      let rows: readonly Row[] = []
      for (const statement of statements) rows = (await client.query<Row>(statement)).rows
      return rows
    } finally {
      await client.end()
    }
  }
  const up = new Set<Instance>()
  const poolers: (() => Promise<void>)[] = []
  try {
    mkdirSync(first.folder)
    if (owner !== null) chownSync(first.folder, owner.uid, owner.gid)
    await program('initdb', ['-D', first.data, '-U', 'paddock', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'])
    await first.control('start')
    up.add(first)
    stands('first')
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
      await ask(now, `CREATE DATABASE queue_${count}`)
      return url(`queue_${count}`)
    },
    restart: async (how) => {
      await first.control('-m', how, 'restart')
    },
    follow: async ({ synchronous }) => {
      const second = instance('second')
      mkdirSync(second.folder)
      if (owner !== null) chownSync(second.folder, owner.uid, owner.gid)
      await program('pg_basebackup', ['-h', first.folder, '-U', 'paddock', '-D', second.data, '-R', '-c', 'fast'])
      await second.control('start')
      up.add(second)
      if (synchronous) {
        await ask(first.folder, "ALTER SYSTEM SET synchronous_standby_names = '*'", 'SELECT pg_reload_conf()')
      }
      return {
        cutOff: async () => {
          const [has] = await ask(first.folder, 'SELECT pg_current_wal_lsn() AS lsn')
          for (let there = false; !there;) {
            const [got] = await ask(
              second.folder,
              `SELECT pg_last_wal_replay_lsn() >= '${String(has?.['lsn'])}' AS there`,
            )
            there = got?.['there'] === true
          }
          await ask(second.folder, "ALTER SYSTEM SET primary_conninfo = ''", 'SELECT pg_reload_conf()')
        },
        promote: async () => {
          await first.control('-m', 'immediate', 'stop')
          up.delete(first)
          await second.control('promote')
          stands('second')
        },
      }
    },
    pooler: async (given) => {
      const socket = join(folder, `pooler-${poolers.length}`)
      mkdirSync(socket)
      if (owner !== null) chownSync(socket, owner.uid, owner.gid)
      poolers.push(await startPooler(socket, now, given, owner))
      return (database) => database.replace(encodeURIComponent(now), encodeURIComponent(socket))
    },
    stop: async () => {
      for (const stop of poolers) await stop()
      for (const one of up) await one.control('-m', 'immediate', 'stop')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** One server: its data, and its socket beside them. */
class Instance {
  readonly folder: string
  readonly data: string
  readonly #program: (name: string, args: readonly string[]) => Promise<unknown>
  readonly #options: string

  constructor(
    program: (name: string, args: readonly string[]) => Promise<unknown>,
    folder: string,
    settings: Readonly<Record<string, string>>,
  ) {
    this.#program = program
    this.folder = folder
    this.data = join(folder, 'data')
    const given = { listen_addresses: '', unix_socket_directories: folder, max_connections: '100', ...settings }
    this.#options = Object.entries(given)
      .map(([name, value]) => `-c ${name}='${value}'`)
      .join(' ')
  }

  async control(...args: readonly string[]): Promise<void> {
    const log = join(this.folder, 'log')
    await this.#program('pg_ctl', ['-D', this.data, '-l', log, '-o', this.#options, '-w', ...args])
  }
}

/** Debian's PgBouncer in the foreground, with its socket in `folder`. Ends when it takes connections; the result ends it. */
async function startPooler(
  folder: string,
  server: string,
  given: Readonly<Record<string, string>>,
  owner: ReturnType<typeof unprivileged>,
): Promise<() => Promise<void>> {
  const users = join(folder, 'users')
  writeFileSync(users, '"paddock" ""\n')
  const settings = { listen_port: '5432', unix_socket_dir: folder, auth_type: 'trust', auth_file: users, ...given }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, ['[databases]', `* = host=${server}`, '[pgbouncer]', ...lines, ''].join('\n'))
  const child = spawn('/usr/sbin/pgbouncer', [file], { ...owner, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line)
    if (line.includes('process up')) break
  }
  if (child.exitCode !== null) throw new Error(said.join('\n'))
  child.stderr.resume()
  return async () => {
    child.kill('SIGTERM')
    await ended
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
