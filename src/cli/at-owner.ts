/** A command's side of what it asks of the process that owns its data directory. */
import { createParser } from 'eventsource-parser'
import { z } from 'zod'
import type { OwnerAddress } from '../access/index.ts'
import { catalogue, type ErrorCode, PaddockError } from '../core/index.ts'
import type { RunProgress } from '../rollout/index.ts'
import type { ResumeRequest, RunRequest } from '../server/index.ts'

const submitted = z.object({ runId: z.string() })
const failure = z.object({ error: z.object({ code: z.string(), message: z.string(), fix: z.string() }) })
const liveRun = z.object({ runId: z.string() }).loose()

/** What a submitted run came to, as its owner tells it. */
export type Told =
  | { readonly kind: 'progress'; readonly progress: RunProgress }
  | { readonly kind: 'run'; readonly data: Readonly<Record<string, unknown>> }

/**
 * Hands a run to the process that owns the data directory and yields what it tells, the last one of kind `run`. The
 * signal stops the run at its owner, whose summary still comes. Throws what the owner answers, and `STORE_LOCKED` when
 * the owner goes away in between.
 */
export async function* followAtOwner(
  owner: OwnerAddress,
  asked: RunRequest | ResumeRequest,
  signal: AbortSignal,
): AsyncGenerator<Told> {
  const headers = { authorization: `Bearer ${owner.token}`, 'content-type': 'application/json' }
  // Listening starts before the run does, and ends with this generator however it ends.
  const done = new AbortController()
  try {
    const events = await fetch(`${owner.origin}/events`, { headers, signal: done.signal })
    const [path, body] = placeOf(asked)
    const sent = { method: 'POST', headers, body: JSON.stringify(body), signal }
    const answer = await fetch(`${owner.origin}${path}`, sent)
    const taken: unknown = await answer.json()
    if (!answer.ok) throw ownerError(taken, owner, 'refuses the run')
    const { runId } = submitted.parse(taken)
    const cancel = (): void =>
      void fetch(`${owner.origin}/runs/${runId}`, { method: 'DELETE', headers }).catch(() => done.abort())
    if (signal.aborted) cancel()
    else signal.addEventListener('abort', cancel, { once: true, signal: done.signal })
    for await (const { event, data } of liveEvents(events)) {
      if (event !== 'run' && event !== 'progress') continue
      const told = liveRun.parse(data)
      if (told.runId !== runId) continue
      if (event === 'run') {
        yield { kind: 'run', data: told }
        return
      }
      // The owner is this same program: what it publishes is a RunProgress.
      yield { kind: 'progress', progress: told['progress'] as RunProgress }
    }
  } finally {
    done.abort()
  }
  throw new PaddockError('STORE_LOCKED', `the owner (pid ${owner.pid}) ended before the run did`, {
    fix: 'Start the run again; `paddock list` shows what was recorded.',
  })
}

function placeOf(asked: RunRequest | ResumeRequest): readonly [string, object] {
  if (!('resume' in asked)) return ['/runs', asked]
  const { resume, ...body } = asked
  return [`/runs/${resume}/resume`, body]
}

/** The failure that an owner told, under its own code. */
export function ownerError(body: unknown, owner: OwnerAddress, what: string): PaddockError {
  const parsed = failure.safeParse(body)
  if (!parsed.success) return new PaddockError('STORE_LOCKED', `the owner (pid ${owner.pid}) ${what}`)
  const { code, message, fix } = parsed.data.error
  const known = isCode(code) ? code : 'INTERNAL'
  return new PaddockError(known, `the owner (pid ${owner.pid}) ${what}: ${message}`, { fix })
}

function isCode(code: string): code is ErrorCode {
  return code in catalogue
}

async function* liveEvents(response: Response): AsyncGenerator<{ event: string; data: unknown }> {
  const waiting: { event: string; data: unknown }[] = []
  const parser = createParser({
    onEvent: ({ event = 'message', data }) => waiting.push({ event, data: JSON.parse(data) as unknown }),
  })
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    yield* waiting.splice(0)
  }
}
