import { z } from 'zod'
import type { RlApi } from './api.ts'
import type { RlParts } from './contract.ts'
import { incarnation } from './shapes.ts'

/** Keys are named and not sent: a request, the store and every log hold the name alone. The configuration lists them. */
const keyRef = z.string().regex(/^[A-Za-z][\w-]*$/, 'must be a name of `engine.keys` in the configuration')

const url = z.url({ protocol: /^https?$/ }).refine((text) => {
  const { username, password } = new URL(text)
  return username === '' && password === ''
}, 'must hold no credentials; give key_ref')

const engine = z.strictObject({
  url,
  role: z.literal('rollout', 'is `rollout`: replicas that sample; others are not served here').default('rollout'),
  key_ref: keyRef.nullable().default(null),
})

const body = z.strictObject({
  incarnation,
  engines: z
    .array(engine)
    .min(1)
    .max(1024)
    .refine((list) => new Set(list.map((one) => one.url)).size === list.length, 'must name each URL once'),
})

const answer = z.strictObject({
  engines: z.array(
    z.strictObject({
      url: z.string(),
      state: z.enum(['serving', 'ejected', 'stale', 'foreign', 'draining']),
      label: z.string().nullable(),
    }),
  ),
})

/** The servers that a trainer has started, and those that it is about to end. */
export function engineRoutes(api: RlApi, { engines }: RlParts): void {
  const about = { name: 'putEngines', says: 'The replicas of the engine from now on', body, answer }
  api.add('put', '/runs/:id/engines', about, async ({ params, body: asked }) => {
    const replicas = await engines.put(params.id, asked)
    return { engines: replicas.map((one) => ({ url: one.url, state: one.state, label: one.weightVersion })) }
  })
}
