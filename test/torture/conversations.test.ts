import { afterAll, beforeAll, describe, it } from 'vitest'
import { type Lab, openLab } from '../lab/lab.ts'
import { incidents, oneMeaning, profiles, propertyOf, survivesFaults } from '../properties/invariants.ts'
import { sized } from './size.ts'

/** The properties of `test/properties`, over many more conversations, on the APIs of vLLM and SGLang. */
const runs = Number(process.env['RUNS'] ?? sized(40, 4))
const seed = Number(process.env['SEED'] ?? 20_261_122)
const cases = profiles.flatMap((model) => (['vllm', 'sglang'] as const).map((wire) => ({ model, wire })))

describe.each(cases)(
  `${runs} generated conversations of each kind on $model, $wire (seed ${seed})`,
  ({ model, wire }) => {
    let lab: Lab
    beforeAll(async () => {
      lab = await openLab({ model, flags: ['--wire', wire], adapter: wire })
    })
    afterAll(() => lab[Symbol.asyncDispose]())

    it.each(incidents)('hold the invariants: $name', (kind) => propertyOf({ lab, ...kind, runs, seed }))

    it('train nothing that is not the truth, whatever the engine gets wrong', () =>
      survivesFaults({ lab, runs: runs * 2, seed }))

    it('have one meaning in every dialect, streamed or not', () => oneMeaning({ lab, runs: Math.ceil(runs / 8), seed }))
  },
)
