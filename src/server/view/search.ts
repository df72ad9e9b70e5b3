import { z } from 'zod'
import { type Event, type Id, PaddockError } from '../../core/index.ts'
import { requestMessages } from '../../proxy/index.ts'
import type { RolloutView, SessionRecord, StoreReader } from '../../trajectory/index.ts'
import { parse } from '../parse.ts'
import { commonPrefix, type ReadMessage, readMessage } from '../../read/index.ts'
import { recordedName } from '../recorded-name.ts'
import { oneId } from './paths.ts'
import { type Failure, readRollout } from './rollout-lines.ts'
import { parsedMessage } from './session-pages.ts'
import type { SearchHit, SearchPart, SearchPlace } from './search-contract.ts'

/** Time after which a step ends, once something was looked at. */
const stepMs = 250
/** Hits after which a step ends. */
const stepHits = 50
/** Hits of one rollout that are told; the others are counted. */
const rolloutHits = 20
/** Rollouts that one query reads. */
const pageSize = 50
/** Calls whose bodies one read holds. */
const bodiesAtOnce = 32
/** Sessions of no rollout that are looked at, the newest. */
const mostLoose = 1000
const aroundChars = 80

/** What is looked for, and where. */
export const searchQuery = z.strictObject({
  q: z.string().trim().min(2, 'at least two characters').max(200),
  run: recordedName.optional(),
  from: z
    .string()
    .regex(/^[^/]+\/\d+\/\d+$/, 'not what `next` said')
    .optional(),
})

/** Where a search stands: before which rollout, at which of its sessions, at which call. */
interface Place {
  readonly rollout: Id
  readonly session: number
  readonly call: number
}

type Found = Pick<SearchHit, 'where' | 'of' | 'call' | 'event'> & { readonly text: string }

/**
 * One step of a search over what is recorded, newest rollouts first. There is no index: a viewer may write none, and one in memory would
 * grow with the store. A step reads some rollouts, or some calls of a long session, and says where the next one goes on; whoever
 * asks shows how far it is and stops when he likes. Throws `BODY_INVALID_SHAPE`, `NOT_FOUND`, `STORE_CORRUPT`.
 */
export async function searchStep(reader: StoreReader, asked: unknown, o: { readonly budgetMs?: number } = {}) {
  const { q, run, from } = parse(searchQuery, asked, 'query')
  return new Step(reader, { needle: q, runId: run ?? null }, performance.now() + (o.budgetMs ?? stepMs)).take(
    from === undefined ? null : placeOf(from),
  )
}

class Step {
  readonly #reader: StoreReader
  readonly #needle: RegExp
  readonly #runId: Id | null
  readonly #until: number
  readonly #hits: SearchHit[] = []
  readonly #names = new Map<string, string>()
  #rollouts = 0
  #calls = 0
  #left = 0
  /** Of the rollout that is looked at. */
  #own = 0

  constructor(reader: StoreReader, o: { readonly needle: string; readonly runId: Id | null }, until: number) {
    this.#reader = reader
    this.#needle = new RegExp(o.needle.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`), 'iu')
    this.#runId = o.runId
    this.#until = until
  }

  async take(from: Place | null): Promise<SearchPart> {
    const next = await this.#walk(from)
    return {
      hits: this.#hits,
      looked: { rollouts: this.#rollouts, calls: this.#calls },
      of: await this.#reader.catalogue.countRollouts({ runId: this.#runId }),
      left: this.#left,
      next,
    }
  }

  async #walk(from: Place | null): Promise<string | null> {
    const { catalogue } = this.#reader
    if (this.#runId !== null) await catalogue.run(this.#runId)
    let at = from
    if (at?.rollout === loose) return this.#loose(at)
    if (at !== null && (at.session > 0 || at.call > 0)) {
      // In the midst of a rollout: it goes on there, and then with those before it.
      const on = await this.#rollout(await catalogue.rollout(at.rollout), at)
      if (on !== null) return textOf(on)
    }
    for (;;) {
      const page = await catalogue.rollouts({
        before: at?.rollout ?? null,
        limit: pageSize,
        ...(this.#runId === null ? {} : { runId: this.#runId }),
      })
      for (const view of page) {
        if (this.#rollouts > 0 && this.#isOver() && at !== null) return textOf(at)
        const on = await this.#rollout(view, null)
        if (on !== null) return textOf(on)
        at = { rollout: view.id, session: 0, call: 0 }
      }
      if (page.length < pageSize) break
    }
    return this.#runId === null ? this.#loose({ rollout: loose, session: 0, call: 0 }) : null
  }

  /** Sessions that belong to no rollout. */
  async #loose(at: Place): Promise<string | null> {
    const sessions = await this.#reader.recorder.sessions({ rolloutId: null, limit: mostLoose })
    this.#own = 0
    const on = await this.#sessions(sessions, null, at)
    return on === null ? null : textOf(on)
  }

  /** Looks at a rollout from a place in it on; resolves to the place at which the step ends in it. */
  async #rollout(view: RolloutView, from: Place | null): Promise<Place | null> {
    this.#own = 0
    const { recorder } = this.#reader
    if (from === null) {
      this.#rollouts += 1
      const { line, failure } = readRollout(view, await this.#nameOf(view))
      for (const found of ofRollout(view, line.task, failure)) this.#look(view, found)
      const events = await recorder.events({ rolloutId: view.id })
      for (const [n, event] of events.entries()) for (const found of ofEvent(event, n)) this.#look(view, found)
    }
    const sessions = await recorder.sessions({ rolloutId: view.id })
    return this.#sessions(sessions, view, from ?? { rollout: view.id, session: 0, call: 0 })
  }

  async #sessions(sessions: readonly SessionRecord[], view: RolloutView | null, from: Place): Promise<Place | null> {
    for (let nth = from.session; nth < sessions.length; nth += 1) {
      const id = sessions[nth]?.id ?? ''
      const start = nth === from.session ? from.call : 0
      if (start === 0) for (const found of ofSession(sessions[nth])) this.#look(view, found)
      const on = await this.#callsOf(id, view, start)
      if (on !== null) return { rollout: from.rollout, session: nth, call: on }
      const isLast = nth + 1 === sessions.length
      if (!isLast && this.#isOver()) return { rollout: from.rollout, session: nth + 1, call: 0 }
    }
    return null
  }

  /** Looks at a session's calls from one on; resolves to the one at which the step ends. */
  async #callsOf(id: Id, view: RolloutView | null, from: number): Promise<number | null> {
    const { recorder } = this.#reader
    const { calls } = await recorder.session(id, { bodies: [] })
    for (let start = from; start < calls.length; start += bodiesAtOnce) {
      const part = calls.slice(start, start + bodiesAtOnce)
      const before = part.map(({ intent }) =>
        calls.findLast((one) => one.intent.seq < intent.seq && one.intent.callClass === intent.callClass),
      )
      const wanted = new Set([...part, ...before.flatMap((one) => one ?? [])].map(({ intent }) => intent.id))
      const read = await recorder.session(id, { bodies: [...wanted] })
      const messages = new Map(
        read.calls
          .filter(({ intent }) => wanted.has(intent.id))
          .map(({ intent }) => [intent.id, requestMessages(intent)] as const),
      )
      for (const [at, call] of part.entries()) {
        this.#calls += 1
        const place = { sessionId: id, seq: call.intent.seq }
        const own = messages.get(call.intent.id) ?? []
        const shared = commonPrefix(own, messages.get(before[at]?.intent.id ?? '') ?? [])
        // The answer before is echoed in the next request; it was looked at where it was given.
        const fresh = own.slice(shared).filter((one, nth) => nth > 0 || before[at] === undefined || !isAnswer(one))
        const found = [
          ...fresh.flatMap((one) => ofMessage(readMessage(one), place)),
          ...(call.commit?.choices ?? []).flatMap(({ message }) =>
            ofMessage(readMessage(parsedMessage(message)), place),
          ),
          ...(call.commit?.findings ?? []).map((text) => of('finding', '', text, place)),
          ...(call.commit?.forks ?? []).map(({ cause }) => of('finding', 'fork', cause, place)),
        ]
        for (const one of found) this.#look(view, one)
      }
      if (start + bodiesAtOnce < calls.length && this.#isOver()) return start + bodiesAtOnce
    }
    return null
  }

  #isOver(): boolean {
    return this.#hits.length >= stepHits || performance.now() > this.#until
  }

  #look(view: RolloutView | null, { text, ...found }: Found): void {
    const match = this.#needle.exec(text)
    if (match === null) return
    this.#own += 1
    if (this.#own > rolloutHits) {
      this.#left += 1
      return
    }
    const [words] = match
    const end = match.index + words.length
    this.#hits.push({
      ...found,
      of: found.of.slice(0, 100),
      runId: view?.runId ?? null,
      rolloutId: view?.id ?? null,
      task: view === null ? '' : (this.#names.get(view.taskDigest) ?? ''),
      before: text.slice(Math.max(0, match.index - aroundChars), match.index),
      match: words,
      after: text.slice(end, end + aroundChars),
    })
  }

  async #nameOf({ taskDigest }: RolloutView): Promise<string> {
    const known = this.#names.get(taskDigest)
    if (known !== undefined) return known
    const { name } = await this.#reader.catalogue.task(taskDigest)
    this.#names.set(taskDigest, name)
    return name
  }
}

/** Stands for all sessions that belong to no rollout. */
const loose = 'none'

function of(where: SearchPlace, what: string, text: string, call: Found['call'] = null, event: number | null = null) {
  return { where, of: what, text, call, event }
}

function ofRollout(view: RolloutView, task: string, failure: Failure | null): readonly Found[] {
  return [
    of('id', 'rollout', view.id),
    of('id', 'group', view.groupId),
    of('task', '', task),
    ...Object.entries(view.labels).map(([name, value]) => of('label', name, value)),
    ...view.taints.map((taint) => of('cause', 'taint', taint)),
    ...(failure === null ? [] : [of('cause', failure.cause, `${failure.cause} ${view.endDetail}`)]),
    ...view.verdicts.flatMap((verdict) => [
      of('verdict', verdict.verifier.id, verdict.evidence),
      ...('reason' in verdict ? [of('verdict', verdict.status, verdict.reason)] : []),
    ]),
  ]
}

function ofSession(session: SessionRecord | undefined): readonly Found[] {
  if (session === undefined) return []
  const at = { sessionId: session.id, seq: 0 }
  return [
    of('id', 'session', session.id, at),
    ...Object.entries(session.labels).map(([name, value]) => of('label', name, value, at)),
  ]
}

function ofEvent(event: Event, n: number): readonly Found[] {
  switch (event.kind) {
    case 'exec':
      return [event.command, event.stdout, event.stderr].map((text) => of('command', event.role, text, null, n))
    case 'tool_result':
      return [of('tool result', event.tool, event.result, null, n)]
    // They are the rollout's own.
    case 'label':
    case 'taint':
    case 'rollout_end':
    case 'stage':
      return []
    default: {
      const { id: _id, at: _at, rolloutId: _rollout, sessionId: _session, ...facts } = event
      return [of('event', event.kind, JSON.stringify(facts), null, n)]
    }
  }
}

function ofMessage(message: ReadMessage, call: NonNullable<Found['call']>): readonly Found[] {
  const { role, text, reasoning, toolCalls } = message
  const where = role === 'assistant' ? 'answer' : role === 'tool' ? 'tool result' : 'prompt'
  return [
    of(where, role, text, call),
    ...(reasoning === null ? [] : [of('reasoning', role, reasoning, call)]),
    ...toolCalls.map(({ name, argumentsText }) => of('tool call', name, `${name} ${argumentsText}`, call)),
  ]
}

function isAnswer(message: unknown): boolean {
  return readMessage(message).role === 'assistant'
}

function textOf({ rollout, session, call }: Place): string {
  return `${rollout}/${session}/${call}`
}

function placeOf(text: string): Place {
  const [rollout = '', session = '', call = ''] = text.split('/')
  if (rollout !== loose && !oneId.safeParse(rollout).success) {
    throw new PaddockError('BODY_INVALID_SHAPE', `query: from: ${rollout} is not an id`)
  }
  return { rollout, session: Number(session), call: Number(call) }
}
