import { posix } from 'node:path'
import { z } from 'zod'
import { assignmentsOf, expanded, instructionsOf } from '../../sandbox/index.ts'
import type { TerminalData } from './data.ts'

/** What the last stage of a Dockerfile says of the commands that run in its image. */
export interface ImageFacts {
  /** Where its first stage begins. */
  readonly base: string
  /** Null: the base's. */
  readonly workdir: string | null
  /** Null: the base's. */
  readonly user: string | null
  readonly hasEntrypoint: boolean
  /** What `HEALTHCHECK` says; null: nothing, or `NONE`. */
  readonly healthcheck: Healthcheck
  /** The first of its volumes; null: there is none. */
  readonly volume: string | null
}

type Healthcheck = TerminalData['agent']['healthcheck']

const nothing = { workdir: null, user: null, hasEntrypoint: false, healthcheck: null, volume: null }

/** Work directories of bases that are known here; an image made from nothing has the root. */
const workdirs: Readonly<Record<string, string>> = { 'paddock-base': '/workspace', 'paddock-debian': '/', scratch: '/' }

/** Reads `FROM`, `WORKDIR`, `USER`, `ENTRYPOINT`, `HEALTHCHECK`, `VOLUME` and the variables in them. Values that are not in the file are `unknown`. */
export function factsOf(dockerfile: string): ImageFacts {
  const stages = new Map<string, ImageFacts>()
  const global = new Map<string, string>()
  let stage: ImageFacts | null = null
  let name = ''
  let known = new Map<string, string>()
  let env = new Set<string>()
  for (const { word, rest } of instructionsOf(dockerfile)) {
    if (word === 'FROM') {
      const [image = '', as, alias] = rest.split(/\s+/).filter((part) => !part.startsWith('--'))
      const base = expanded(image, global)
      const of = stages.get(base.toLowerCase())
      stage = of ?? { ...nothing, base, workdir: workdirs[plain(base)] ?? null }
      name = as?.toUpperCase() === 'AS' ? (alias ?? '').toLowerCase() : String(stages.size)
      known = new Map()
      env = new Set()
    } else if (word === 'ARG' || word === 'ENV') {
      // One instruction sees the values of before it, and no argument takes the place of a variable.
      const before = new Map(known)
      for (const [key, value] of assignmentsOf(rest)) {
        const found = value ?? global.get(key)
        if (word === 'ENV') env.add(key)
        else if (env.has(key)) continue
        if (found !== undefined) (stage === null ? global : known).set(key, expanded(found, before))
      }
    } else if (stage !== null) stage = told(stage, word, rest, known)
    if (stage !== null) stages.set(name, stage)
  }
  return stage ?? { ...nothing, base: '' }
}

function told(facts: ImageFacts, word: string, raw: string, known: ReadonlyMap<string, string>): ImageFacts {
  const rest = expanded(raw, known)
  const value = rest.replaceAll(/^(["'])(.*)\1$/g, '$2')
  switch (word) {
    case 'WORKDIR': {
      if (value.startsWith('/')) return { ...facts, workdir: posix.normalize(value) }
      return facts.workdir === null ? facts : { ...facts, workdir: posix.join(facts.workdir, value) }
    }
    case 'USER':
      return { ...facts, user: value }
    case 'ENTRYPOINT':
      return { ...facts, hasEntrypoint: value.replaceAll(/\s/g, '') !== '[]' && value !== '' }
    case 'HEALTHCHECK':
      // The shell of a check expands its variables itself.
      return { ...facts, healthcheck: healthcheckOf(raw) }
    case 'VOLUME':
      return { ...facts, volume: facts.volume ?? /[^\s"',[\]]+/.exec(rest)?.[0] ?? null }
    default:
      return facts
  }
}

/** With Docker's own values for what it leaves out (Dockerfile reference, "HEALTHCHECK"). */
function healthcheckOf(rest: string): Healthcheck {
  const [, flags = '', command] = /^((?:--\S+\s+)*)CMD\s+([^]+)$/i.exec(rest) ?? []
  if (command === undefined) return null
  const given = new Map([...flags.matchAll(/--([a-z-]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]))
  const retries = Number(given.get('retries') ?? 0)
  return {
    command: commandOf(command),
    intervalMs: milliseconds(given.get('interval')) || 30_000,
    timeoutMs: milliseconds(given.get('timeout')) || 30_000,
    startPeriodMs: milliseconds(given.get('start-period')),
    startIntervalMs: milliseconds(given.get('start-interval')) || 5000,
    retries: Number.isInteger(retries) && retries > 0 ? retries : 3,
  }
}

/** A list of words as a line for a shell. */
function commandOf(command: string): string {
  if (!command.startsWith('[')) return command
  try {
    const words = z.array(z.string()).parse(JSON.parse(command))
    return words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ')
  } catch {
    return command
  }
}

/** A duration as Go writes it (`1m30s`, `500ms`); 0 for none. */
function milliseconds(text = ''): number {
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)]
  return parts.reduce((sum, [, value, unit = '']) => sum + Number(value) * (units[unit] ?? 0), 0)
}

/** Whether a stage begins with what is known here. */
export function isOwnBase(base: string): boolean {
  return plain(base) in workdirs
}

/** `paddock-base:latest` is `paddock-base`. */
export function plain(reference: string): string {
  return reference.toLowerCase().replace(/:latest$/, '')
}
