import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { z } from 'zod'
import { encodeRows, isOutcomeStopped, type RoundClaim, roundJson } from '../../trajectory/index.ts'
import { recordedName } from '../recorded-name.ts'
import { nothing, type RlApi, written } from './api.ts'
import type { RlParts } from './contract.ts'
import { rowsAnswer } from './rows-answer.ts'
import { countOf, incarnation, leaseS, name, waitS, whileThere } from './shapes.ts'

const rowsType = 'application/vnd.paddock.rows'
/** Below this a body is not worth squeezing. */
const smallBytes = 1024

const policyName = z.string().min(1).max(40).nullable().default(null)

const claimBody = z.strictObject({
  /** Of several policies one; left out: rounds of any. */
  policy: policyName,
  incarnation,
  consumer: z.string().min(1).max(200).default('trainer'),
  max_groups: z.int().min(1).max(1000).default(1),
  wait_s: waitS,
  lease_s: leaseS.default(300),
})

const renewBody = z.strictObject({ incarnation, lease_s: leaseS.default(300) })
const leased = z.strictObject({ lease_s: z.number() })

const claimsAnswer = z.strictObject({
  claims: z.array(
    z.strictObject({
      claim_id: name,
      group_id: name,
      round: z.int(),
      policy: z.string().optional(),
      lease_s: z.number(),
      again: z.boolean(),
      settled: z.strictObject({
        state: z.enum(['settled', 'failed']),
        stopped_by: z.enum(['usable', 'any_pass', 'variance', 'deadline', 'cancelled']).nullable(),
        outcome_stopped: z.boolean(),
        members: z.int(),
        usable: z.int(),
        censored: z.strictObject({ members: z.int(), sampled_tokens: z.int() }),
        carried: z.strictObject({ members: z.int(), sampled_tokens: z.int() }),
        never_began: z.int(),
      }),
    }),
  ),
})

const squeezed = promisify(gzip)

/** Settled groups, leased, and their rows. */
export function claimRoutes(api: RlApi, { handOuts, trainer }: RlParts): void {
  const claiming = { name: 'claim', says: 'Leases settled rounds', body: claimBody, answer: claimsAnswer }
  api.add('post', '/runs/:id/claims', claiming, async ({ response, params, body: asked }) => {
    const claims = await handOuts.claim(params.id, {
      policy: asked.policy,
      incarnation: asked.incarnation,
      consumer: asked.consumer,
      maxGroups: asked.max_groups,
      leaseMs: asked.lease_s * 1000,
      waitMs: asked.wait_s * 1000,
      signal: whileThere(response),
    })
    return { claims: claims.map(claimView) }
  })
  const renewing = { name: 'renewClaim', says: 'Makes a lease longer', body: renewBody, answer: leased }
  api.add('post', '/claims/:id/renew', renewing, async ({ params, body: asked }) => {
    await trainer.renew(params.id, { incarnation: asked.incarnation, leaseMs: asked.lease_s * 1000 })
    return { lease_s: asked.lease_s }
  })
  const query = z.object({ incarnation: z.coerce.number().int().min(1) })
  const giving = { name: 'giveBackClaim', says: 'Gives a round back', query, answer: nothing }
  api.add('delete', '/claims/:id', giving, async ({ params, query: asked }) => {
    await trainer.giveBack(params.id, asked)
    return {}
  })
  const rowsQuery = z.object({
    claim_id: recordedName.nullable().default(null),
    /** Of what is only read: whose rows. */
    policy: policyName,
    spans: z.enum(['true', 'false']).default('false'),
  })
  const types = [rowsType, 'application/json']
  const fetching = { name: 'rows', says: 'The rows of a settled round', query: rowsQuery, answer: rowsAnswer, types }
  api.add('get', '/groups/:id/rounds/:round/rows', fetching, async ({ request, response, params, query: asked }) => {
    const round = countOf(params.round, 'round')
    const rows = await handOuts.rows(params.id, round, {
      claimId: asked.claim_id,
      policy: asked.policy,
      spans: asked.spans === 'true',
    })
    const asJson = request.accepts(types) === 'application/json'
    const body = asJson ? Buffer.from(JSON.stringify(roundJson(rows))) : encodeRows(rows)
    response.type(asJson ? 'application/json' : rowsType).vary('Accept, Accept-Encoding')
    if (body.length < smallBytes || request.acceptsEncodings('gzip') === false) {
      response.send(body)
      return written
    }
    response.set('content-encoding', 'gzip').send(await squeezed(body, { level: 1 }))
    return written
  })
}

function claimView({ id, groupId, round, policy, leaseMs, again, settled }: RoundClaim) {
  return {
    claim_id: id,
    group_id: groupId,
    round,
    ...(policy === null ? {} : { policy }),
    lease_s: leaseMs / 1000,
    again,
    settled: {
      state: settled.state,
      stopped_by: settled.stoppedBy,
      outcome_stopped: isOutcomeStopped(settled),
      members: settled.members.length,
      usable: settled.usable,
      censored: { members: settled.censored.members, sampled_tokens: settled.censored.sampledTokens },
      carried: { members: settled.carried.members, sampled_tokens: settled.carried.sampledTokens },
      never_began: settled.neverBegan,
    },
  }
}
