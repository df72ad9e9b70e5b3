import { posix } from 'node:path'
import { assignmentsOf, expanded, instructionsOf } from '../../sandbox/index.ts'

/** What the last stage of a Dockerfile says of the commands that run in its image. */
export interface ImageFacts {
  /** Where its first stage begins. */
  readonly base: string
  /** Null: the base's. */
  readonly workdir: string | null
  /** Null: the base's. */
  readonly user: string | null
  readonly hasEntrypoint: boolean
}

/** Work directories of bases that are known here; an image made from nothing has the root. */
const workdirs: Readonly<Record<string, string>> = { 'paddock-base': '/workspace', 'paddock-debian': '/', scratch: '/' }

/** Reads `FROM`, `WORKDIR`, `USER`, `ENTRYPOINT` and the variables in them. Values that are not in the file are `unknown`. */
export function factsOf(dockerfile: string): ImageFacts {
  const stages = new Map<string, ImageFacts>()
  const global = new Map<string, string>()
  let stage: ImageFacts | null = null
  let name = ''
  let known = new Map<string, string>()
  for (const { word, rest } of instructionsOf(dockerfile)) {
    if (word === 'FROM') {
      const [image = '', as, alias] = rest.split(/\s+/).filter((part) => !part.startsWith('--'))
      const base = expanded(image, global)
      const of = stages.get(base.toLowerCase())
      stage = of ?? { base, workdir: workdirs[plain(base)] ?? null, user: null, hasEntrypoint: false }
      name = as?.toUpperCase() === 'AS' ? (alias ?? '').toLowerCase() : String(stages.size)
      known = new Map()
    } else if (word === 'ARG' || word === 'ENV') {
      for (const [key, value] of assignmentsOf(rest)) {
        const found = value ?? global.get(key)
        if (found !== undefined) (stage === null ? global : known).set(key, expanded(found, known))
      }
    } else if (stage !== null) stage = told(stage, word, expanded(rest, known))
    if (stage !== null) stages.set(name, stage)
  }
  return stage ?? { base: '', workdir: null, user: null, hasEntrypoint: false }
}

function told(facts: ImageFacts, word: string, rest: string): ImageFacts {
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
    default:
      return facts
  }
}

/** Whether a stage begins with what is known here. */
export function isOwnBase(base: string): boolean {
  return plain(base) in workdirs
}

/** `paddock-base:latest` is `paddock-base`. */
export function plain(reference: string): string {
  return reference.toLowerCase().replace(/:latest$/, '')
}
