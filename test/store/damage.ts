/** Damages stores in every way that a disk has, and says what came of it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, open, readdir, rm, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, isPaddockError, sha256, systemClock } from '../../src/core/index.ts'
import { fsck, openReader, openStore, salvage, type StoreReader } from '../../src/trajectory/index.ts'

/** What is told of each damage. */
export interface Outcomes {
  reported: number
  harmless: number
  /** Damages that nobody noticed although something reads otherwise, or that ended in an error that is none of ours. */
  readonly missed: string[]
  /** Sessions that a salvage lost although their records were not touched. */
  readonly lost: string[]
  readonly byFile: Record<string, number>
}

/** A store as everything in it reads: sessions by id, and the rest. */
interface Contents {
  readonly sessions: ReadonlyMap<string, string>
  readonly rest: string
}

/** When calls in flight are said to have ended. */
const clock: Clock = { ...systemClock, now: () => 1_800_000_000_000 }

/** Numbers below 1, always the same from a seed (mulberry32, public domain). */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Fills a store, closed or killed. */
export async function filled(directory: string, sessions: number, end: 'close' | 'kill'): Promise<void> {
  const script = new URL('./fill.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [script, directory, String(sessions), end], { stdio: 'inherit' })
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  if (code !== 0 && signal !== 'SIGKILL') throw new Error(`filling ended with ${code ?? signal}`)
}

/** Damages a copy of the store `count` times, each time from anew. `salvageEvery`: how often a salvage is tried too. */
export async function damageStore(
  base: string,
  killed: boolean,
  o: { readonly count: number; readonly seed: number; readonly salvageEvery: number },
): Promise<Outcomes> {
  const next = random(o.seed)
  const outcomes: Outcomes = { reported: 0, harmless: 0, missed: [], lost: [], byFile: {} }
  const sound = await onCopy(base, (copy) => contentsOf(copy, killed))
  for (let n = 0; n < o.count; n += 1) {
    await onCopy(base, async (copy) => {
      const { what, kind, file } = await damage(copy, next)
      outcomes.byFile[kind] = (outcomes.byFile[kind] ?? 0) + 1
      try {
        const reported = await isReported(copy)
        if (n % o.salvageEvery === 0) outcomes.lost.push(...(await lostBySalvage(copy, sound, what, file)))
        if (reported) outcomes.reported += 1
        else {
          const now = await contentsOf(copy, killed)
          if (isSame(now, sound)) outcomes.harmless += 1
          else outcomes.missed.push(what)
        }
      } catch (error) {
        outcomes.missed.push(`${what}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
      }
    })
  }
  return outcomes
}

/** Whether `fsck` names something; an error that is none of ours is thrown. */
async function isReported(directory: string): Promise<boolean> {
  try {
    return (await fsck(directory)).problems.length > 0
  } catch (error) {
    if (isPaddockError(error) && (error.code.startsWith('STORE_') || error.code === 'NOT_FOUND')) return true
    throw error
  }
}

/** One flipped bit, one cut, or one removed file. */
async function damage(
  directory: string,
  next: () => number,
): Promise<{ readonly what: string; readonly kind: string; readonly file: string }> {
  const kinds = Map.groupBy(await filesOf(directory), kindOf)
  const names = [...kinds.keys()].toSorted()
  const kind = names[Math.floor(next() * names.length)] ?? ''
  const files = (kinds.get(kind) ?? []).toSorted()
  const file = files[Math.floor(next() * files.length)] ?? ''
  const path = join(directory, file)
  const { size } = await stat(path)
  const way = next()
  if (way < 0.08 || size === 0) {
    await rm(path)
    return { what: `${file} removed`, kind, file }
  }
  if (way < 0.2) {
    const length = Math.floor(next() * size)
    await truncate(path, length)
    return { what: `${file} cut to ${length} of ${size}`, kind, file }
  }
  const at = Math.floor(next() * size)
  const bit = Math.floor(next() * 8)
  const handle = await open(path, 'r+')
  const byte = Buffer.alloc(1)
  await handle.read(byte, 0, 1, at)
  byte[0] = (byte[0] ?? 0) ^ (1 << bit)
  await handle.write(byte, 0, 1, at)
  await handle.close()
  return { what: `${file}, bit ${bit} of byte ${at} flipped`, kind, file }
}

function kindOf(file: string): string {
  return file.startsWith('blobs/') ? 'blobs' : file.replace(/-\d+$/, '')
}

/** All that the store rests on; shared memory of SQLite is made anew, and what names the owner holds no data. */
async function filesOf(directory: string): Promise<string[]> {
  const all = await readdir(directory, { recursive: true, withFileTypes: true })
  return all
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .filter((file) => !/-shm$|^lock$|^owner\.sqlite/.test(file))
}

/** Sessions that were not damaged and did not come over as they were. */
async function lostBySalvage(copy: string, sound: Contents, what: string, file: string): Promise<readonly string[]> {
  const into = `${copy}-salvaged`
  try {
    const { sessions, lost } = await salvage(copy, into, { clock })
    const now = await contentsOf(into, false)
    const cut = new Set(sessions.cut.map(({ id }) => id))
    const ofTheLog = file.startsWith('log.sqlite')
    return [...sound.sessions].flatMap(([id, text]) => {
      const found = now.sessions.get(id)
      if (found === text || (ofTheLog && cut.has(id))) return []
      // What nothing but the journal knew of is gone with it, and what nothing but the log knew of with the log.
      if (found === undefined && ofTheLog && lost.length > 0) return []
      return [`${what}: session ${id} ${found === undefined ? 'is gone' : 'reads otherwise'} after a salvage`]
    })
  } finally {
    await rm(into, { recursive: true, force: true })
  }
}

async function contentsOf(directory: string, killed: boolean): Promise<Contents> {
  // An owner takes in what is in the journal and ends what was in flight.
  if (killed) await (await openStore(directory, { clock })).close()
  await using reader = await openReader(directory)
  const sessions = new Map<string, string>()
  for (const { id } of await reader.recorder.sessions()) {
    sessions.set(id, plain(await reader.recorder.session(id)))
  }
  const rollouts = await reader.catalogue.rollouts({})
  return { sessions, rest: plain({ rollouts, artifacts: await artifactsOf(reader, rollouts) }) }
}

async function artifactsOf(
  reader: StoreReader,
  rollouts: Awaited<ReturnType<StoreReader['catalogue']['rollouts']>>,
): Promise<readonly string[]> {
  const named = rollouts.flatMap(({ verdicts }) => verdicts.flatMap(({ artifacts }) => artifacts))
  const told = named.map(async (artifact) => {
    // A blob that did not come over is not there.
    if (!(await reader.blobs.has(artifact.sha256))) return 'gone'
    return sha256(Buffer.from(await reader.blobs.get(artifact.sha256)).toString('latin1'))
  })
  return Promise.all(told)
}

/** Everything as text, arrays of numbers and bytes too. */
function plain(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    ArrayBuffer.isView(member)
      ? Buffer.from(member.buffer, member.byteOffset, member.byteLength).toString('base64')
      : member,
  )
}

function isSame(a: Contents, b: Contents): boolean {
  return a.rest === b.rest && plain([...a.sessions]) === plain([...b.sessions])
}

async function onCopy<T>(base: string, act: (copy: string) => Promise<T>): Promise<T> {
  const copy = await mkdtemp(join(tmpdir(), 'paddock-damage-'))
  try {
    await cp(base, copy, { recursive: true })
    return await act(copy)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}
