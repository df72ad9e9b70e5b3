import express, { type Request, Router } from 'express'
import { PaddockError } from '../../core/index.ts'
import { digestOf, type NodeJobs, type VerifyJobs } from '../../rollout/index.ts'
import type { LeaseKey } from '../../trajectory/index.ts'
import { admittedAs } from '../../access/index.ts'
import { parse } from '../parse.ts'
import { whileThere } from '../while-there.ts'
import { claimVerificationsBody, tokenQuery, verifiedBody } from './wire.ts'

/** What the routes of verifications on nodes are built on. */
export interface NodeVerificationParts {
  readonly jobs: Pick<NodeJobs, 'sessionOf' | 'waiting'>
  readonly verifications: Pick<VerifyJobs, 'claim' | 'files' | 'file' | 'artifact' | 'handIn'>
}

/** Verifications that nodes do: each route is for a session of the token that asks, and what goes with a verification for who holds it. */
export function nodeVerificationRoutes({ jobs, verifications }: NodeVerificationParts): Router {
  const routes = Router()
  const json = express.json({ limit: '4mb', strict: true })
  const own = async (request: Request<{ id: string }>, needs: 'up' | null = null): Promise<void> => {
    await jobs.sessionOf(admittedAs(request).caller.name, request.params.id, needs)
  }
  const leased = async (request: Request<{ id: string; job: string }>): Promise<LeaseKey> => {
    const { token } = parse(tokenQuery, request.query, 'query')
    await own(request)
    return { jobId: request.params.job, session: request.params.id, token }
  }

  routes.post('/nodes/sessions/:id/verifications', json, async (request, response) => {
    const body = parse(claimVerificationsBody, request.body ?? {}, 'body')
    const { request_id: requestId, limit, without, wait_ms: waitMs } = body
    await own(request, 'up')
    const found = await jobs.waiting.claim({
      kind: JSON.stringify(['verify', without.toSorted()]),
      limit,
      waitMs,
      signal: whileThere(response),
      attempt: () => verifications.claim(request.params.id, { requestId, limit, without }),
    })
    response.json({ jobs: found })
  })
  routes.get('/nodes/sessions/:id/verifications/:job/files', async (request, response) => {
    response.json(await verifications.files(await leased(request)))
  })
  routes.get('/nodes/sessions/:id/verifications/:job/files/:digest', async (request, response) => {
    const path = await verifications.file(await leased(request), request.params.digest)
    response.type('application/octet-stream').sendFile(path, { dotfiles: 'allow' })
  })
  routes.get('/nodes/sessions/:id/verifications/:job/artifacts/:digest', async (request, response) => {
    const bytes = await verifications.artifact(await leased(request), request.params.digest)
    response.type('application/octet-stream').send(Buffer.from(bytes))
  })
  routes.post('/nodes/sessions/:id/verifications/:job/hand-in', json, async (request, response) => {
    const lease = await leased(request)
    const { came } = parse(verifiedBody, request.body ?? {}, 'body')
    const answer = await verifications.handIn(lease, { digest: digestOf(came), came })
    if (!answer.accepted) {
      throw new PaddockError('HANDIN_REFUSED', `the verdict of job ${lease.jobId} is refused: ${answer.why}`, {
        data: { why: answer.why },
      })
    }
    response.json({ repeated: answer.repeated, state: answer.state })
  })
  return routes
}
