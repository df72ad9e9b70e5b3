/**
 * Compares the trainer's book with the reference model of its rules (`loop-model.ts`, written from the rules alone): the same random requests, kills
 * and clocks get the same answers, and leave every group in the same state. `LOOP_RUNS=10000` tries more sequences.
 */
import { join } from 'node:path'
import type Database from 'better-sqlite3'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { type Id, isPaddockError, newId, sha256 } from '../../src/core/index.ts'
import { catalogueMigrations, SqlCatalogue } from '../../src/trajectory/catalogue/index.ts'
import { openForWriting } from '../../src/trajectory/sqlite/index.ts'
import { SqliteSql } from '../../src/trajectory/sql/index.ts'
import { LeaseWatch } from '../../src/trajectory/trainer/lease-watch.ts'
import { SqlTrainerBook } from '../../src/trajectory/trainer/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { LoopModel } from './loop-model.ts'

const leaseMs = 1000
const step = fc.nat(4)
/** One of the newest claims, counted from the last. */
const which = fc.constantFrom(0, 0, 0, 1, 2, 5)
/** Usually the newest trainer session, sometimes the one before. */
const back = fc.constantFrom(0, 0, 0, 0, 1)
const request = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('settle') }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('claim'), back }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('dispose'), back, which, step }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('renew'), back, which }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('giveBack'), back, which }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.constantFrom(600, 600, 1000) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('attach'), step: fc.option(step) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('checkpoint'), back, step }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('live'),
      back,
      ordinal: fc.nat(6),
      label: fc.nat(6),
      step: fc.option(step),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kill') }) },
)
type Request =
  | { readonly kind: 'settle' | 'kill' }
  | { readonly kind: 'claim'; readonly back: number }
  | { readonly kind: 'dispose'; readonly back: number; readonly which: number; readonly step: number }
  | { readonly kind: 'renew' | 'giveBack'; readonly back: number; readonly which: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'attach'; readonly step: number | null }
  | { readonly kind: 'checkpoint'; readonly back: number; readonly step: number }
  | {
      readonly kind: 'live'
      readonly back: number
      readonly ordinal: number
      readonly label: number
      readonly step: number | null
    }

const file = join(tempDir(), 'catalogue.sqlite')
let now = 0
let db: Database.Database
let catalogue: SqlCatalogue
let book: SqlTrainerBook
/** All that a process knows is gone; the file is what it was. */
function start(): void {
  if (db?.open) db.close()
  db = openForWriting(file, { synchronous: 'normal', migrations: catalogueMigrations, now: 1 })
  const sql = new SqliteSql(db)
  catalogue = new SqlCatalogue(sql)
  book = new SqlTrainerBook(sql, null, new LeaseWatch(() => now))
}
start()
afterAll(() => db.close())

const task = {
  name: 'task',
  environment: 'terminal',
  instruction: 'do',
  split: 'train',
  source: 'test',
  data: {},
} as const
const spec = {
  n: 1,
  over: 0,
  minUsable: 1,
  stopWhen: { kind: 'usable', count: 1 },
  carry: false,
  topUp: 0,
  deadlineMs: null,
  labels: {},
  horizon: null,
  fork: null,
  onCut: { horizon: 'verify', budget: 'verify', context_overflow: 'verify', agent_timeout: 'verify' },
} as const

const codes = { FENCED: 'FENCED', CLAIM_OVER: 'CLAIM_OVER', STORE_CONFLICT: 'CONFLICT' } as const
/** The answer, or the code of the refusal. */
async function answer<T>(asked: Promise<T>): Promise<T | (typeof codes)[keyof typeof codes]> {
  return asked.catch((error: unknown) => {
    const code = isPaddockError(error) ? codes[error.code as keyof typeof codes] : undefined
    if (code === undefined) throw error
    return code
  })
}

/** A run of the book, and its model. */
class Beside {
  readonly model = new LoopModel()
  readonly run: Id
  session = 0
  #groups = 0
  #names = new Map<Id, string>()
  #labels = new Map<string, string | null>()
  readonly #claims: { readonly id: Id; readonly group: Id }[] = []
  /** When this process saw each lease first, or again behind a renewal. */
  #seen = new Map<Id, number>()

  constructor(run: Id) {
    this.run = run
  }

  async ask(one: Request): Promise<void> {
    const session = 'back' in one ? Math.max(1, this.session - one.back) : this.session
    switch (one.kind) {
      case 'settle':
        return this.#settle()
      case 'attach': {
        const told = this.model.attach(one.step)
        const found = await book.attach(this.run, { resumeStep: one.step, consumer: null })
        this.session = found.incarnation
        expect([found.incarnation, found.undone.dispositions]).toEqual([told.session, told.undone])
        return
      }
      case 'claim':
        return this.#claim(session)
      case 'wait':
        now += one.ms
        return
      case 'kill':
        this.model.paddockKilled()
        this.#seen = new Map()
        start()
        return
      case 'checkpoint': {
        const found = await answer(book.checkpoint(this.run, { incarnation: session, step: one.step }).then(() => 'ok'))
        expect(found).toBe(this.model.checkpoint(session, one.step))
        return
      }
      case 'live': {
        const weights = { ordinal: one.ordinal, label: `${this.run}-${one.label}` }
        const said = book.announce(this.run, { incarnation: session, ...weights, step: one.step })
        expect(await answer(said.then(() => 'ok'))).toBe(this.model.live(session, weights, one.step))
        return
      }
      default:
        return this.#ofClaim(one, session)
    }
  }

  async #ofClaim(one: Request & { readonly which: number }, session: number): Promise<void> {
    const claim = this.#claims.at(-1 - one.which)
    if (claim === undefined) return
    const { id, group } = claim
    if (one.kind === 'dispose') {
      const said = { row: `${group}:row`, step: one.step, use: 0, outcome: 'used', claimId: id } as const
      const whole = { ...said, tokens: null, advantage: 0, rewardUsed: 1, reason: null }
      const found = await answer(book.dispose(this.run, { incarnation: session, dispositions: [whole] }))
      const told = typeof found === 'string' ? found : found.accepted === 1 ? 'accepted' : 'repeated'
      expect(told).toBe(this.model.dispose(session, id, one.step))
      return
    }
    const asked =
      one.kind === 'renew'
        ? book.renew(id, { incarnation: session, leaseMs })
        : book.giveBack(id, { incarnation: session })
    const found = await answer(asked.then(() => 'ok' as const))
    expect(found).toBe(this.model[one.kind as 'renew' | 'giveBack'](session, id))
    if (found === 'ok' && one.kind === 'renew') this.#seen.delete(id)
  }

  async #settle(): Promise<void> {
    const groupId = newId()
    const name = `group ${(this.#groups += 1)}`
    this.#names.set(groupId, name)
    this.#labels.set(name, this.model.liveWeights?.label ?? null)
    this.model.settle(name)
    await catalogue.putGroup({
      id: groupId,
      runId: this.run,
      taskDigest: sha256('task'),
      promptVariant: 'p',
      createdAt: 1,
    })
    await catalogue.openRound({ groupId, runId: this.run, round: 0, spec })
    const none = { members: 0, sampledTokens: 0 }
    const counts = { usable: 0, censored: none, carried: none, neverBegan: 0 }
    const settled = {
      groupId,
      runId: this.run,
      round: 0,
      state: 'settled',
      stoppedBy: null,
      members: [],
      ...counts,
    } as const
    await catalogue.settleRound(settled)
  }

  /** Claims one. The trainer says of rows under gone weights that they are stale, and asks again. */
  async #claim(session: number): Promise<void> {
    this.#expire()
    for (;;) {
      const id = newId()
      const asked = { incarnation: session, consumer: 'c', maxGroups: 1, leaseMs, ids: [id] }
      const found = await answer(book.claim(this.run, asked))
      if (typeof found === 'string' || found.length === 0) {
        expect(this.model.claim(session, id)).toBe(typeof found === 'string' ? found : null)
        return
      }
      const group = found[0]?.groupId ?? ''
      const name = this.#names.get(group) ?? ''
      const label = this.#labels.get(name) ?? null
      if (label !== null && (await this.#gone()).has(label)) {
        await book.handOut(id, [])
        continue
      }
      await book.handOut(id, [{ rowId: `${group}:row`, segmentIds: [], labels: label === null ? [] : [label] }])
      expect(this.model.claim(session, id)).toBe(name)
      this.#claims.push({ id, group })
      this.#seen.set(id, now)
      return
    }
  }

  /** Rule 6: over is what this process saw unchanged for the whole lease. A lease that it sees now for the first time begins. */
  #expire(): void {
    for (const { id } of this.#claims) {
      const since = this.#seen.get(id)
      if (since === undefined) this.#seen.set(id, now)
      else if (now - since >= leaseMs) this.model.expire(id)
    }
  }

  async #gone(): Promise<ReadonlySet<string>> {
    return new Set((await book.versions(this.run)).flatMap(({ label, gone }) => (gone ? [label] : [])))
  }

  async holds(): Promise<void> {
    const gone = await this.#gone()
    const rows = db.prepare('SELECT "group", state FROM handouts WHERE run = ?').all(this.run) as {
      group: Id
      state: string
    }[]
    const states = this.model.states()
    for (const { group, state } of rows) {
      const name = this.#names.get(group) ?? ''
      const isGone = gone.has(this.#labels.get(name) ?? '')
      const told = states.get(name)?.state
      // A lease that ran out is the claim's until the next request for claims.
      const shown =
        state === 'done'
          ? isGone && told !== 'used'
            ? 'stale'
            : 'used'
          : state === 'ready' && isGone
            ? 'stale'
            : state
      expect([name, shown === 'claimed' && told === 'free' ? 'free' : shown]).toEqual([
        name,
        told === 'free' && state === 'ready' ? 'ready' : told,
      ])
    }
    const live = (await book.versions(this.run)).findLast((one) => !one.gone)
    expect(live?.label ?? null).toBe(this.model.liveWeights?.label ?? null)
  }
}

it('keeps its rules through random requests, kills and waits', { timeout: 600_000 }, async () => {
  await catalogue.putTask({ digest: sha256('task'), ...task })
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 5, maxLength: 40 }), async (requests) => {
      const run = newId()
      await catalogue.putRun({ id: run, name: 'r', createdAt: 1, config: {} })
      const beside = new Beside(run)
      await beside.ask({ kind: 'attach', step: null })
      for (const one of requests) {
        await beside.ask(one as Request)
        await beside.holds()
      }
    }),
    { numRuns: Number(process.env['LOOP_RUNS'] ?? 500) },
  )
})
