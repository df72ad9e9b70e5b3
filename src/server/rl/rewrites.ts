import { z } from 'zod'
import { rewriteSchema, type RewriteReport } from '../../rollout/index.ts'
import { verdictInForce } from '../../trajectory/index.ts'
import type { RlApi } from './api.ts'
import type { RlParts } from './contract.ts'
import { name, number, whileThere } from './shapes.ts'

const mostRewrites = 256

const body = z.strictObject({
  /** Of the run that they come into. */
  name: z.string().min(1).max(200).default('rewrite'),
  /** All of them come in or none. */
  rewrites: z
    .array(rewriteSchema.omit({ rollout: true }))
    .min(1)
    .max(mostRewrites),
})

const answer = z.strictObject({
  run_id: name,
  /** False: they came in before, all or some of them. */
  is_new: z.boolean(),
  /** Rollouts that this request brought. */
  taken: z.int(),
  /** In the order of `rewrites`. */
  rollouts: z.array(
    z.strictObject({
      rollout_id: name,
      /** Null: it has none. */
      status: z.string().nullable(),
      reward: number,
    }),
  ),
  /** `{prompt, chosen, rejected, …}` of each that corrects an answer, as `paddock rewrite --pairs` writes them. */
  pairs: z.array(z.record(z.string(), z.unknown())),
})

/** New rollouts of recorded ones, with other messages in the place of some. */
export function rewriteRoutes(api: RlApi, { rewrites, reader }: RlParts): void {
  const about = { name: 'rewrite', says: 'New rollouts of a recorded one, with other messages in it', body, answer }
  api.add('post', '/rollouts/:id/rewrites', about, async ({ response, params: { id }, body: asked }) => {
    const report = await rewrites.rewrite({ rolloutId: id, ...asked, signal: whileThere(response) })
    return { ...counts(report), rollouts: await takenOf(reader, report) }
  })
}

function counts({ runId, isNew, taken, pairs }: RewriteReport) {
  return { run_id: runId, is_new: isNew, taken, pairs: pairs.map((line) => pair.parse(JSON.parse(line))) }
}

const pair = z.record(z.string(), z.unknown())

async function takenOf({ catalogue }: RlParts['reader'], { runId }: RewriteReport) {
  const found = await catalogue.rollouts({ runId })
  return found
    .toSorted((one, other) => one.slot - other.slot)
    .map(({ id, verdicts }) => {
      const verdict = verdictInForce(verdicts)
      return { rollout_id: id, status: verdict?.status ?? null, reward: verdict?.reward ?? null }
    })
}
