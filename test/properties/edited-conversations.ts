import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { type Lab, openLab } from '../lab/lab.ts'
import { dialects } from '../lab/official.ts'
import { converseEdited, editedConversations, holdsEdited } from './edits.ts'

const seed = Number(process.env['SEED'] ?? 20_261_122)

/** Tests with `runs` conversations for each of two models and four dialects. */
export function editedConversationsHold(runs: number): void {
  describe.each(['scripted-hermes', 'scripted-qwen3'])(
    `one edited message on %s (${runs} conversations, seed ${seed})`,
    (model) => {
      let lab: Lab
      beforeAll(async () => {
        lab = await openLab({ model })
      })
      afterAll(() => lab[Symbol.asyncDispose]())

      it.each(dialects)(
        'is one fork with its cause, and what follows goes on from it (%s)',
        (dialect) =>
          fc.assert(
            fc.asyncProperty(editedConversations, async (given) => {
              holdsEdited(given, await converseEdited(lab, dialect, given))
            }),
            { numRuns: runs, seed, endOnFailure: true },
          ),
        600_000,
      )
    },
  )
}
