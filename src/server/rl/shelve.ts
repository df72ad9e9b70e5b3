import { z } from 'zod'
import { isPaddockError } from '../../core/index.ts'
import { nothing, type RlApi } from './api.ts'
import type { RlParts } from './contract.ts'
import { name } from './shapes.ts'

const body = z.strictObject({ reason: z.string().max(1000).default('asked for by its trainer') })
const state = z.strictObject({ rollout_id: name, state: z.enum(['working', 'shelved', 'resuming']) })
const states = z.strictObject({
  rollouts: z.array(state),
  refused: z.array(z.strictObject({ rollout_id: name, code: z.string(), message: z.string() })),
})

/** Agents at work are put aside, and go on later. */
export function shelveRoutes(api: RlApi, { shelving, reader }: RlParts): void {
  const shelvingOne = { name: 'shelve', says: 'Puts the agent of a rollout aside', body, answer: state }
  api.add('post', '/rollouts/:id/shelve', shelvingOne, async ({ params: { id }, body: { reason } }) => {
    await reader.catalogue.rollout(id)
    return { rollout_id: id, state: await shelving.shelve(id, reason) }
  })
  const resumingOne = { name: 'resume', says: 'Lets a shelved agent go on', body: nothing, answer: state }
  api.add('post', '/rollouts/:id/resume', resumingOne, async ({ params: { id } }) => {
    await reader.catalogue.rollout(id)
    return { rollout_id: id, state: shelving.resume(id) }
  })
  const shelvingAll = { name: 'shelveRun', says: 'Puts all agents of a run aside', body, answer: states }
  api.add('post', '/runs/:id/shelve', shelvingAll, async ({ params: { id }, body: { reason } }) => {
    await reader.catalogue.run(id)
    const asked = shelving.ofRun(id).map(async (rolloutId) => ({
      rollout_id: rolloutId,
      state: await shelving.shelve(rolloutId, reason).catch((cause: unknown) => {
        if (isPaddockError(cause)) return cause
        throw cause
      }),
    }))
    const ended = await Promise.all(asked)
    return {
      rollouts: ended.flatMap((one) =>
        isPaddockError(one.state) ? [] : [{ rollout_id: one.rollout_id, state: one.state }],
      ),
      refused: ended.flatMap(({ rollout_id, state: how }) =>
        isPaddockError(how) ? [{ rollout_id, code: how.code, message: how.message }] : [],
      ),
    }
  })
  const resumingAll = {
    name: 'resumeRun',
    says: 'Lets all shelved agents of a run go on',
    body: nothing,
    answer: states,
  }
  api.add('post', '/runs/:id/resume', resumingAll, async ({ params: { id } }) => {
    await reader.catalogue.run(id)
    return {
      rollouts: shelving.ofRun(id).map((rolloutId) => ({ rollout_id: rolloutId, state: shelving.resume(rolloutId) })),
      refused: [],
    }
  })
}
