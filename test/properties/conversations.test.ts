import { afterAll, beforeAll, describe, it } from 'vitest'
import { type Lab, openLab } from '../lab/lab.ts'
import { incidents, oneMeaning, profiles, propertyOf, survivesFaults } from './invariants.ts'

/** A few of each; `test/torture/conversations.test.ts` holds many more. */
const runs = Number(process.env['RUNS'] ?? 2)
const seed = Number(process.env['SEED'] ?? 20_261_121)

describe.each(profiles)(`generated conversations on %s (seed ${seed})`, (model) => {
  let lab: Lab
  beforeAll(async () => {
    lab = await openLab({ model })
  })
  afterAll(() => lab[Symbol.asyncDispose]())

  it.each(incidents)('hold the invariants: $name', (kind) => propertyOf({ lab, ...kind, runs, seed }), 600_000)

  // Eight ways through each conversation: of two families here, of all in torture.
  it.runIf(['scripted-hermes', 'scripted-qwen3'].includes(model))(
    'have one meaning in every dialect, streamed or not',
    () => oneMeaning({ lab, runs: 1, seed }),
  )

  it('train nothing that is not the truth, whatever the engine gets wrong', () => survivesFaults({ lab, runs, seed }))
})
