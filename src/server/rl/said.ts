import { z } from 'zod'
import { dispositionOutcomes } from '../../trajectory/index.ts'
import { type RlApi, nothing } from './api.ts'
import type { RlParts } from './contract.ts'
import { incarnation, name, number, step } from './shapes.ts'

const unsaid = number.default(null)

const disposition = z.strictObject({
  /** The claim that the row came with. */
  claim_id: name,
  row: z.string().min(1).max(400),
  step,
  use: z.int().min(0).default(0),
  outcome: z.enum(dispositionOutcomes),
  tokens: z
    .tuple([z.int().min(0), z.int().min(0)])
    .refine(([start, end]) => start < end, 'must be [start, end], start before end')
    .nullable()
    .default(null),
  advantage: unsaid,
  reward_used: unsaid,
  reason: z.string().max(1000).nullable().default(null),
})

const dispositionsBody = z.strictObject({ incarnation, dispositions: z.array(disposition).max(100_000) })

const values = z.record(z.string(), z.number())
const metricsBody = z.strictObject({ incarnation, step, values, mismatch: values.nullable().default(null) })

const disposed = z.strictObject({ accepted: z.int(), repeated: z.int(), claims_done: z.array(name) })
const recorded = z.strictObject({
  metrics: z.array(z.strictObject({ incarnation, step, values, mismatch: values.nullable(), undone: z.boolean() })),
})

/** What a trainer says of rows and steps. */
export function saidRoutes(api: RlApi, { trainer, reader }: RlParts): void {
  const disposing = { name: 'dispose', says: 'What became of rows', body: dispositionsBody, answer: disposed }
  api.add('post', '/runs/:id/dispositions', disposing, async ({ params, body }) => {
    const { accepted, repeated, claimsDone } = await trainer.dispose(params.id, {
      incarnation: body.incarnation,
      dispositions: body.dispositions.map(({ claim_id: claimId, reward_used: rewardUsed, ...rest }) => ({
        ...rest,
        claimId,
        rewardUsed,
      })),
    })
    return { accepted, repeated, claims_done: claimsDone }
  })
  const putting = {
    name: 'putMetrics',
    says: "The trainer's own numbers of a step",
    body: metricsBody,
    answer: nothing,
  }
  api.add('post', '/runs/:id/metrics', putting, async ({ params, body }) => {
    await trainer.putMetrics(params.id, body)
    return {}
  })
  const query = z.object({ after_step: z.coerce.number().int().nullable().default(null) })
  const reading = { name: 'metrics', says: 'The numbers that a trainer has sent', query, answer: recorded }
  api.add('get', '/runs/:id/metrics', reading, async ({ params, query: asked }) => {
    const { id } = await reader.catalogue.run(params.id)
    return { metrics: await trainer.metrics(id, { afterStep: asked.after_step }) }
  })
}
