import { PaddockError } from '../../../core/index.ts'
import type { CorpusSource, Document } from '../corpus/index.ts'
import { dice } from '../../dice.ts'
import { passageOf } from './passages.ts'
import { questionsOf } from './questions.ts'
import { makeWorld, type Thing, type World } from './world.ts'

/** Which world. */
export type GeneratedSource = Extract<CorpusSource, { kind: 'generated' }>

/** The only version of the generator. Any change of its output is a new one. */
const knownVersion = 1

/** A question with the ids of its evidence: a line of `questions.jsonl`. */
export interface QuestionRow {
  readonly id: string
  readonly kind: string
  readonly question: string
  readonly golden_answers: readonly string[]
  readonly evidence: readonly string[]
  readonly queries: readonly string[]
  readonly weak_answer: string
}

/** The passages of a made-up world, in the order of the corpus. Throws `TASK_UNSUPPORTED` for an unknown version. */
export function generatePassages(source: GeneratedSource): readonly Document[] {
  return shelved(source).documents
}

/** Questions about the world of a source, of one level or of all, with the passages that answer them. Throws `TASK_UNSUPPORTED` likewise. */
export function generateQuestions(
  source: GeneratedSource,
  count: number,
  level: number | null = null,
): readonly QuestionRow[] {
  const { world, ids } = shelved(source)
  const chance = dice(source.seed + (level === null ? 2 : 2 + level))
  return questionsOf(world, chance, count, level).map(({ evidence, ...rest }, i) => ({
    id: `q${String(i + 1).padStart(3, '0')}`,
    ...rest,
    evidence: evidence.map((thing) => ids.get(thing) ?? ''),
  }))
}

/** The things of a world in the order of the corpus, which says nothing of their kinds. */
function shelved({ version, seed, passages }: GeneratedSource): {
  readonly world: World
  readonly documents: readonly Document[]
  readonly ids: ReadonlyMap<Thing, string>
} {
  if (version !== knownVersion) {
    throw new PaddockError('TASK_UNSUPPORTED', `Version ${version} of the corpus generator is not known`, {
      fix: `Use corpus.version = ${knownVersion} in search.toml.`,
    })
  }
  const world = makeWorld(seed, passages)
  const chance = dice(seed + 1)
  const ids = new Map<Thing, string>()
  const documents = chance.shuffled(Object.values(world).flat()).map((thing: Thing, i) => {
    const id = `d${String(i + 1).padStart(5, '0')}`
    ids.set(thing, id)
    return { id, title: thing.name, text: passageOf(thing, world, chance) }
  })
  return { world, documents, ids }
}
