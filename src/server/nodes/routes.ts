import express, { type Request, Router } from 'express'
import { PaddockError } from '../../core/index.ts'
import type { NodeJobs, VerifyJobs } from '../../rollout/index.ts'
import { admittedAs } from '../../access/index.ts'
import { parse } from '../parse.ts'
import { whileThere } from '../while-there.ts'
import { bodyInTurn } from './body-in-turn.ts'
import type { ByteGate } from './byte-gate.ts'
import {
  beatBody,
  claimBody,
  digestHeader,
  giveBackBody,
  handInQuery,
  type NodeEngines,
  nodeProtocol,
  openBody,
  tokenQuery,
  versions,
  weightsBody,
} from './wire.ts'

/** What the routes of nodes are built on. */
export interface NodeParts {
  readonly jobs: NodeJobs
  /** What nodes verify. */
  readonly verifications: VerifyJobs
  /** Null: none yet. */
  readonly engines: () => NodeEngines | null
  /** Of this Paddock. */
  readonly version: string
  readonly maxHandInBytes: number
  /** Bytes of hand-ins that are in memory at once; further ones are not read until there is room. */
  readonly handIns: ByteGate
  /** How often the catalogue lost what was committed: what was handed in before is handed in again. */
  readonly rewound: () => number
}

/** Claims and lists of files are small; hand-ins have a bound of their own. */
const maxBodyBytes = '1mb'

/** The routes of nodes. A token of role node reaches these, and of these its own sessions alone. */
export function nodeRoutes({ jobs, engines, version, maxHandInBytes, handIns, rewound }: NodeParts): Router {
  const routes = Router()
  const json = express.json({ limit: maxBodyBytes, strict: true })
  const who = (request: Request): string => admittedAs(request).caller.name

  routes.post('/nodes/sessions', json, async (request, response) => {
    requireSame(parse(versions, request.body ?? {}, 'body'), version)
    const { name, labels } = parse(openBody, request.body, 'body')
    const session = await jobs.open(who(request), { name, labels })
    response.status(201).json({
      session_id: session,
      lease_ms: jobs.leaseMs,
      engines: engines(),
      weights: jobs.weights.now,
      rewound: rewound(),
    })
  })
  routes.delete('/nodes/sessions/:id', async (request, response) => {
    await jobs.end(who(request), request.params.id)
    response.status(204).end()
  })
  routes.post('/nodes/sessions/:id/drain', async (request, response) => {
    await jobs.drain(who(request), request.params.id)
    response.status(204).end()
  })
  routes.post('/nodes/sessions/:id/beat', json, async (request, response) => {
    const body = parse(beatBody, request.body ?? {}, 'body')
    const held = body.jobs.map((one) => ({ jobId: one.job_id, token: one.token }))
    const { alive, stop } = await jobs.beat(who(request), request.params.id, held)
    response.json({
      alive,
      stop: stop.map(({ jobId, why }) => ({ job_id: jobId, why })),
      engines: engines(),
      rewound: rewound(),
    })
  })
  routes.post('/nodes/sessions/:id/weights', json, async (request, response) => {
    const { mark, failed, also, wait_ms: waitMs } = parse(weightsBody, request.body ?? {}, 'body')
    const signal = whileThere(response)
    const asked = { said: { mark, failed }, also, waitMs, signal }
    response.json({ weights: await jobs.weightsFor(who(request), request.params.id, asked) })
  })

  routes.post('/nodes/sessions/:id/claims', json, async (request, response) => {
    const body = parse(claimBody, request.body ?? {}, 'body')
    const { request_id: requestId, rewound: known, wait_ms: waitMs, ...asked } = body
    const claim = { requestId, ...asked, isWhole: known === rewound(), waitMs, signal: whileThere(response) }
    response.json({ jobs: await jobs.claim(who(request), request.params.id, claim) })
  })
  routes.get('/nodes/sessions/:id/runs/:run/files', async (request, response) => {
    response.json(await jobs.files(who(request), request.params.id, request.params.run))
  })
  routes.get('/nodes/sessions/:id/runs/:run/files/:digest', async (request, response) => {
    const { id, run, digest } = request.params
    const path = await jobs.file(who(request), id, { runId: run, digest })
    response.type('application/octet-stream').sendFile(path, { dotfiles: 'allow' })
  })
  routes.get('/nodes/sessions/:id/jobs/:job/parents/:rollout', async (request, response) => {
    const { token } = parse(tokenQuery, request.query, 'query')
    const { id, job, rollout } = request.params
    const packed = await jobs.parent(who(request), { jobId: job, session: id, token }, rollout)
    response.set(digestHeader, packed.digest).type('application/octet-stream').send(packed.bytes)
  })
  const whole = express.raw({ limit: maxHandInBytes, type: () => true, inflate: false })
  routes.use('/nodes/sessions/:id/jobs/:job/hand-in', bodyInTurn(handIns, maxHandInBytes))
  routes.post('/nodes/sessions/:id/jobs/:job/hand-in', whole, async (request, response) => {
    const { token, digest, fault } = parse(handInQuery, request.query, 'query')
    const { id, job } = request.params
    const body: unknown = request.body
    const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
    const answer = await jobs.handIn(
      who(request),
      { jobId: job ?? '', session: id ?? '', token },
      { bytes, digest, fault: fault ?? null },
    )
    if (!answer.accepted) {
      throw new PaddockError('HANDIN_REFUSED', `the hand-in of job ${job} is refused: ${answer.why}`, {
        data: { why: answer.why },
      })
    }
    response.json({ repeated: answer.repeated, state: answer.state })
  })
  routes.post('/nodes/sessions/:id/jobs/:job/give-back', json, async (request, response) => {
    const { token, why, reason } = parse(giveBackBody, request.body ?? {}, 'body')
    const { id, job } = request.params
    const given = await jobs.giveBack(who(request), { jobId: job, session: id, token }, { why, reason })
    response.json({ given_back: given })
  })
  return routes
}

/** Equal protocol, and versions that differ in their patch alone. Throws `NODE_VERSION`. */
function requireSame(node: { readonly protocol: number; readonly paddock: string }, own: string): void {
  const minor = (version: string) => version.split('.').slice(0, 2).join('.')
  if (node.protocol === nodeProtocol && minor(node.paddock) === minor(own)) return
  throw new PaddockError(
    'NODE_VERSION',
    `the node is Paddock ${node.paddock} (protocol ${node.protocol}), and this is ${own} (protocol ${nodeProtocol})`,
    { data: { paddock: own, protocol: nodeProtocol } },
  )
}
