import { z } from 'zod'
import type { TextVerifier } from '../../rollout/index.ts'
import type { RlApi } from './api.ts'
import type { RlParts } from './contract.ts'
import { name, number, whileThere } from './shapes.ts'

/** Continuations of one probe; further ones are asked for again. */
const mostContinuations = 64
const mostTokens = 16_384

const gold = z
  .union([z.string(), z.array(z.string()).min(1).max(100)])
  .transform((one) => (typeof one === 'string' ? [one] : one))
const verifier = z.discriminatedUnion('rule', [
  z.strictObject({ rule: z.literal('exact'), gold }),
  z.strictObject({ rule: z.literal('contains'), gold }),
  z.strictObject({
    rule: z.literal('regex'),
    pattern: z.string().min(1).max(2000),
    flags: z
      .string()
      .regex(/^[imsuv]*$/)
      .default(''),
    whole: z.boolean().default(false),
  }),
  z.strictObject({
    rule: z.literal('number'),
    gold: z.number(),
    absolute: z.number().min(0).default(0),
    relative: z.number().min(0).default(0),
  }),
])

const body = z
  .strictObject({
    k: z.int().min(1).max(mostContinuations),
    max_tokens: z.int().min(1).max(mostTokens),
    temperature: z.number().min(0).max(10).default(1),
    /** Behind the call's answer, up to so many of its tokens; left out: behind its prompt. */
    answer: z
      .strictObject({ choice: z.int().min(0).default(0), offset: z.int().min(0).nullable().default(null) })
      .nullable()
      .default(null),
    suffix: z
      .union([z.string().min(1), z.array(z.int().min(0).max(2_147_483_647)).min(1)])
      .nullable()
      .default(null),
    verifier: verifier.nullable().default(null),
  })
  .refine(({ k, temperature }) => k === 1 || temperature > 0, {
    path: ['temperature'],
    message: 'at 0 all continuations are one: ask for k = 1',
  })

const answer = z.strictObject({
  /** As what it is recorded. */
  probe_call: name,
  session_id: name,
  prompt_tokens: z.int(),
  kind: z.string(),
  temperature: z.number(),
  version: z.strictObject({ label: z.string().nullable(), mixed: z.boolean() }),
  budget: z.strictObject({ tokens: z.int(), spent: z.int() }),
  continuations: z.array(
    z.strictObject({
      index: z.int(),
      text: z.string(),
      ids: z.array(z.int()).readonly(),
      logprobs: z.array(number).readonly(),
      finish_reason: z.string().nullable(),
      value: number,
      why: z.string().nullable(),
    }),
  ),
})

/** Continuations of recorded calls, which no harness sees and nothing trains. */
export function probeRoutes(api: RlApi, { probes }: RlParts): void {
  const about = { name: 'probe', says: 'Continuations of a recorded call', body, answer }
  api.add('post', '/calls/:id/probes', about, async ({ response, params, body: asked }) => {
    const probed = await probes.probe({
      callId: params.id,
      answer: asked.answer,
      suffix: asked.suffix,
      k: asked.k,
      maxTokens: asked.max_tokens,
      temperature: asked.temperature,
      verifier: asked.verifier satisfies TextVerifier | null,
      signal: whileThere(response),
    })
    return {
      probe_call: probed.callId,
      session_id: probed.sessionId,
      prompt_tokens: probed.promptTokens,
      kind: probed.kind,
      temperature: asked.temperature,
      version: { label: probed.weightVersion, mixed: probed.mixed },
      budget: probed.budget,
      continuations: probed.continuations.map(({ finishReason, ...one }) => ({ ...one, finish_reason: finishReason })),
    }
  })
}
