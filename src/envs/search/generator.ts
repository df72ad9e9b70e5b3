import type { GeneratedTask, GeneratorSeed, GeneratorSpec } from '../generate/index.ts'
import { questionSchema, searchTomlSchema } from './config.ts'
import type { CorpusCache } from './corpus-cache.ts'
import type { SearchData } from './data.ts'
import { generateQuestions, type GeneratedSource, type QuestionRow, questionLevels } from './generate/index.ts'
import { dataOf } from './load.ts'

/** Seeds that share a world, and so a corpus that is built once. */
const perWorld = 50
const passages = 1000

/** Questions about made-up worlds: one passage answers those of level 1, two those of level 2, three those of level 3. */
export function worldsGenerator(cache: CorpusCache): GeneratorSpec<SearchData> {
  // The questions of a world come together; the last ones asked for are enough to go through a range.
  let last: { readonly key: string; readonly rows: readonly QuestionRow[] } = { key: '', rows: [] }
  return {
    name: 'worlds',
    levels: questionLevels,
    generate: async ({ seed, level }: GeneratorSeed): Promise<GeneratedTask<SearchData>> => {
      const source: GeneratedSource = {
        kind: 'generated',
        version: 1,
        seed: 1000 + Math.floor(seed / perWorld) * 10,
        passages,
      }
      const key = `${source.seed} ${level}`
      if (last.key !== key) last = { key, rows: generateQuestions(source, perWorld, level) }
      const question = questionSchema.parse(last.rows[seed % perWorld])
      const { digest } = await cache.open(source)
      return {
        instruction: question.question,
        data: dataOf(question, searchTomlSchema.parse({ corpus: source }), digest),
      }
    },
  }
}
