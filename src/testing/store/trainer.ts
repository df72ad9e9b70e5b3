import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Id, newId, sha256, type Task } from '../../core/index.ts'
import {
  type Catalogue,
  type ClaimAsked,
  type Disposition,
  type RoundClaim,
  RunTraining,
  type SettledMember,
  type SettledRound,
  type TrainerBook,
  type TrainerNews,
} from '../../trajectory/index.ts'

/** A trainer's book with the catalogue beside it, whose settled rounds it hands out. */
export interface TrainerBookUnderTest {
  readonly trainer: TrainerBook
  readonly catalogue: Catalogue
  close(): Promise<void>
}

const long = 60_000

/** What every {@link TrainerBook} driver must do. One is made for all tests; each has a run of its own. */
export function trainerBookContract(name: string, make: () => Promise<TrainerBookUnderTest>): void {
  describe(`trainer's book contract: ${name}`, () => {
    let made: TrainerBookUnderTest
    let book: TrainerBook
    beforeAll(async () => {
      made = await make()
      book = made.trainer
    })
    afterAll(async () => made.close())

    /** A run whose trainer has attached, and its groups, settled in order. */
    const run = async (
      groups = 1,
      config: object = {},
    ): Promise<{ runId: Id; groupIds: Id[]; attach: typeof attach }> => {
      const runId = newId()
      await made.catalogue.putRun({ id: runId, name: 'r', createdAt: 1, config })
      const groupIds: Id[] = []
      for (let i = 0; i < groups; i += 1) groupIds.push(await settle(runId))
      const attach = (resumeStep: number | null) => book.attach(runId, { resumeStep, consumer: null })
      await attach(null)
      return { runId, groupIds, attach }
    }
    const settle = async (runId: Id, state: SettledRound['state'] = 'settled'): Promise<Id> => {
      const groupId = await open(runId)
      await made.catalogue.settleRound(settledOf(runId, groupId, 0, state))
      return groupId
    }
    const open = async (runId: Id): Promise<Id> => {
      const groupId = newId()
      await made.catalogue.putTask(task)
      const group = { id: groupId, runId, taskDigest: task.digest, promptVariant: 'p', createdAt: 1 }
      await made.catalogue.putGroup(group)
      await openRound(runId, groupId, 0)
      return groupId
    }
    const openRound = (runId: Id, groupId: Id, round: number) =>
      made.catalogue.openRound({ groupId, runId, round, spec })
    const claim = (runId: Id, more: Partial<ClaimAsked> = {}): Promise<readonly RoundClaim[]> =>
      book.claim(runId, {
        incarnation: 1,
        consumer: 'c',
        maxGroups: 1,
        leaseMs: long,
        ids: Array.from({ length: more.maxGroups ?? 1 }, newId),
        ...more,
      })
    const one = async (runId: Id, more: Partial<ClaimAsked> = {}): Promise<RoundClaim> => {
      const [found] = await claim(runId, more)
      if (found === undefined) throw new Error('nothing to claim')
      return found
    }
    /** The claim with which each row was handed out last. */
    const claimOf = new Map<string, Id>()
    const handOut = (claimId: Id, rows: Parameters<TrainerBook['handOut']>[1]) => {
      for (const { rowId } of rows) claimOf.set(rowId, claimId)
      return book.handOut(claimId, rows)
    }
    const dispose = (runId: Id, dispositions: readonly Disposition[], incarnation = 1) =>
      book.dispose(runId, {
        incarnation,
        dispositions: dispositions.map((one) => ({ ...one, claimId: claimOf.get(one.row) ?? newId() })),
      })
    /** Claims one group, hands its one row out and says that it was used. */
    const train = async (runId: Id, step: number, labels: readonly string[] = ['1'], incarnation = 1) => {
      const held = await one(runId, { incarnation })
      const rowId = `${held.groupId}:row`
      const segmentIds = [`${held.groupId}:segment`]
      await handOut(held.id, [{ rowId, segmentIds, labels }])
      await dispose(runId, [used(rowId, step)], incarnation)
      return { ...held, rowId, segmentIds }
    }
    const groupsOf = (claims: readonly RoundClaim[]) => claims.map(({ groupId }) => groupId)

    describe('members that a stop left going on or cut short', () => {
      it('are known until a further round is opened, and their lengths are', async () => {
        const { runId } = await run(1)
        expect(await book.carryingGroups(runId)).toEqual([])
        expect(await book.lengths(runId)).toEqual({
          kept: { members: 0, meanTokens: null, mostTokens: null },
          censored: { members: 0, meanTokens: null, mostTokens: null },
          byLength: [],
        })
        const groupId = await open(runId)
        const member = (out: SettledMember['out'], sampledTokens: number): SettledMember => {
          const about = { slot: 0, attempt: 0, end: 'completed', verdict: null, cut: null } as const
          return { ...about, rolloutId: newId(), out, sampledTokens }
        }
        await made.catalogue.settleRound({
          ...settledOf(runId, groupId, 0),
          members: [member(null, 2), member(null, 5), member('censored', 9), member('late', 70)],
          carried: { members: 1, sampledTokens: 4 },
        })
        expect(await book.carryingGroups(runId)).toEqual([groupId])
        expect(await book.lengths(runId)).toEqual({
          kept: { members: 2, meanTokens: 3.5, mostTokens: 5 },
          censored: { members: 1, meanTokens: 9, mostTokens: 9 },
          byLength: [
            { above: 0, upTo: 64, members: 3, usable: 2, trained: 0 },
            { above: 64, upTo: 128, members: 1, usable: 0, trained: 0 },
          ],
        })
        await openRound(runId, groupId, 1)
        expect(await book.carryingGroups(runId)).toEqual([])
      })
    })

    describe('lengths of what was trained', () => {
      it('count a rollout while its use stands, and no more when a later incarnation goes back behind it', async () => {
        const { runId, attach } = await run(0)
        const groupId = await open(runId)
        const about = { slot: 0, attempt: 0, end: 'completed', verdict: null, cut: null, out: null } as const
        const member: SettledMember = { ...about, rolloutId: newId(), sampledTokens: 100 }
        await made.catalogue.settleRound({ ...settledOf(runId, groupId, 0), usable: 1, members: [member] })
        const claimed = await one(runId)
        const rowId = `${member.rolloutId}:row`
        await handOut(claimed.id, [{ rowId, segmentIds: [`${claimed.groupId}:segment`], labels: ['1'] }])
        const trained = async () => (await book.lengths(runId)).byLength.reduce((sum, band) => sum + band.trained, 0)
        expect(await trained()).toBe(0)
        await dispose(runId, [used(rowId, 2)])
        expect(await trained()).toBe(1)
        await attach(1)
        expect(await trained()).toBe(0)
      })
    })

    describe('what was handed out and said', () => {
      it('is read by run and by rollout, with what a later incarnation undid', async () => {
        const { runId, attach } = await run(2)
        const first = await train(runId, 1, ['1'])
        const second = await train(runId, 2, ['2'])
        await attach(1)
        const dispositionsOf = async (of: RoundClaim) =>
          (await book.dispositions(runId, { rolloutId: of.groupId })).map(({ row, step, undone }) => [
            row,
            step,
            undone,
          ])
        expect(await dispositionsOf(first)).toEqual([[first.rowId, 1, false]])
        expect(await dispositionsOf(second)).toEqual([[second.rowId, 2, true]])
        const handedOf = async (run: string, of: RoundClaim) =>
          (await book.handedRows(run, { rolloutId: of.groupId })).map((one) => [one.row, one.labels, one.liveOrdinal])
        expect(await handedOf(runId, first)).toEqual([[first.rowId, ['1'], null]])
        expect(await handedOf(runId, second)).toEqual([[second.rowId, ['2'], null]])
        expect(await handedOf(newId(), first)).toEqual([])
        const labels = await book.handedLabels([second.groupId, newId()])
        expect([...labels]).toEqual([[second.groupId, ['2']]])
      })

      it('comes in order of coming, a part at a time, each line once', async () => {
        const { runId, attach } = await run(3)
        await book.announce(runId, { incarnation: 1, ordinal: 7, label: '1', step: null })
        const first = await train(runId, 5)
        const second = await train(runId, 4)
        await book.putMetrics(runId, { incarnation: 1, step: 5, values: { loss: 1 }, mismatch: null })
        await book.putMetrics(runId, { incarnation: 1, step: 4, values: { loss: 2 }, mismatch: null })
        const parts: TrainerNews[] = []
        do {
          parts.push(await book.news(runId, { after: parts.at(-1)?.place ?? null, limit: 1 }))
          expect(parts.at(-1)?.dispositions.length).toBeLessThanOrEqual(1)
        } while (parts.at(-1)?.isAll !== true)
        const all = <T>(of: (news: TrainerNews) => readonly T[]): readonly T[] => parts.flatMap(of)
        expect(all(({ dispositions }) => dispositions).map(({ row, step }) => [row, step])).toEqual([
          [first.rowId, 5],
          [second.rowId, 4],
        ])
        expect(all(({ claims }) => claims).map(({ id, liveOrdinal }) => [id, liveOrdinal])).toEqual([
          [first.id, 7],
          [second.id, 7],
        ])
        expect(all(({ metrics }) => metrics).map(({ step, values }) => [step, values])).toEqual([
          [5, { loss: 1 }],
          [4, { loss: 2 }],
        ])
        expect(all(({ versions }) => versions).map(({ ordinal }) => ordinal)).toEqual([7])
        expect(all(({ incarnations }) => incarnations)).toEqual([{ incarnation: 1, resumeStep: null, undoneFrom: -1 }])
        expect(await book.ordinals(runId, ['1', 'x'])).toEqual(new Map([['1', 7]]))
        const { place } = parts.at(-1) ?? { place: null }
        await attach(4)
        expect(await book.news(runId, { after: place, limit: 9 })).toMatchObject({
          incarnations: [{ incarnation: 2, resumeStep: 4, undoneFrom: 4 }],
          dispositions: [],
          claims: [],
          isAll: true,
        })
      })

      it('rows of a claim come in parts, and it is told once none can come', async () => {
        const { runId } = await run(1)
        const held = await one(runId)
        const of = (after: string, limit: number) => book.rowsOfClaim(held.id, { after, limit })
        expect(await of('', 9)).toEqual({ rows: [], isOver: false })
        const rows = ['a', 'b', 'c'].map((name) => ({
          rowId: `${held.groupId}:${name}`,
          segmentIds: [],
          labels: [name],
        }))
        await handOut(held.id, rows)
        const first = await of('', 2)
        expect(first.rows.map(({ labels }) => labels)).toEqual([['a'], ['b']])
        expect((await of(first.rows.at(-1)?.row ?? '', 2)).rows.map(({ labels }) => labels)).toEqual([['c']])
        await dispose(
          runId,
          rows.map(({ rowId }) => used(rowId, 1)),
        )
        expect((await of('', 9)).isOver).toBe(true)
      })

      it('is kept by a reader that reads on as if it had read all at once', async () => {
        const { runId, attach } = await run(3)
        const kept = new RunTraining(book, runId)
        const all = async (): Promise<void> => {
          while (!(await kept.advance(0)));
        }
        const held = await one(runId)
        await all()
        expect(kept.of(held.groupId)).toBeNull()
        await handOut(held.id, [{ rowId: `${held.groupId}:row`, segmentIds: [], labels: ['1'] }])
        await all()
        expect(kept.of(held.groupId)).toEqual({ labels: ['1'], age: null, given: [] })
        expect([...kept.changed()]).toEqual([held.groupId])
        await book.announce(runId, { incarnation: 1, ordinal: 3, label: '1', step: null })
        const second = await train(runId, 2)
        await all()
        expect(kept.of(second.groupId)).toMatchObject({ age: 0, given: [{ step: 2, outcome: 'used' }] })
        await attach(1)
        await all()
        expect(kept.of(second.groupId)?.given).toEqual([])
        expect([...kept.given()]).toEqual([])
        const before = kept.version
        await all()
        expect(kept.version).toBe(before)
      })
    })

    describe('claims', () => {
      it('give what settled first to one only, with its list', async () => {
        const { runId, groupIds } = await run(3)
        await settle(runId, 'failed')
        await open(runId)
        expect(await book.counts(runId)).toEqual({ ...nothing, running: 1, settledUnclaimed: 3, failed: 1 })
        const first = await claim(runId, { maxGroups: 2 })
        const rest = await claim(runId, { maxGroups: 9, consumer: 'd' })
        expect([...groupsOf(first), ...groupsOf(rest)]).toEqual(groupIds)
        expect(first[0]).toMatchObject({ consumer: 'c', again: false, liveOrdinal: null, round: 0, incarnation: 1 })
        expect(first[0]?.settled).toEqual(settledOf(runId, groupIds[0] ?? '', 0))
        expect(await claim(runId)).toEqual([])
        expect(await book.counts(runId)).toMatchObject({ claimed: 3, settledUnclaimed: 0 })
      })

      it('come back when their lease is over, and when they are given back', async () => {
        const { runId, groupIds } = await run(2)
        const lapsed = await one(runId, { leaseMs: 0 })
        const held = await one(runId)
        expect(held.groupId).toBe(groupIds[0])
        await expect(book.renew(lapsed.id, { incarnation: 1, leaseMs: long })).rejects.toMatchObject(over)
        await expect(handOut(lapsed.id, [])).rejects.toMatchObject(over)
        await book.giveBack(held.id, { incarnation: 1 })
        await book.giveBack(held.id, { incarnation: 1 })
        const last = await claim(runId, { maxGroups: 2 })
        expect(last.map(({ groupId, again }) => [groupId, again])).toEqual([
          [groupIds[0], true],
          [groupIds[1], false],
        ])
        await expect(book.giveBack(held.id, { incarnation: 1 })).rejects.toMatchObject(over)
      })

      it('are renewed, and stay with whoever renews late while nobody else came', async () => {
        const { runId } = await run()
        const held = await one(runId, { leaseMs: 0 })
        expect(await book.nextExpiry(runId)).toBe(0)
        await book.renew(held.id, { incarnation: 1, leaseMs: long })
        expect(await claim(runId)).toEqual([])
        expect(await book.nextExpiry(runId)).toBeGreaterThan(0)
        expect(await book.claimed(held.id)).toMatchObject({ id: held.id, groupId: held.groupId })
        await expect(book.claimed('none')).rejects.toMatchObject({ code: 'NOT_FOUND' })
      })
    })

    describe('several policies of a run', () => {
      const policies = ['a', 'b', 'frozen'].map((name) => ({ name, trained: name !== 'frozen' }))
      const hand = async (held: RoundClaim) => {
        const row = { rowId: `${held.groupId}:${held.policy}`, segmentIds: [`${held.groupId}:${held.policy}:s`] }
        expect(await handOut(held.id, [{ ...row, labels: [`${held.policy}-1`] }])).toEqual({
          segmentIds: [],
          usedRows: [],
        })
        return row.rowId
      }

      it('get each round once each, and one is done while the other waits', async () => {
        const { runId, groupIds } = await run(1, { policies })
        const [groupId = ''] = groupIds
        const both = await claim(runId, { maxGroups: 9 })
        expect(both.map(({ policy }) => policy)).toEqual(['a', 'b'])
        expect(await claim(runId)).toEqual([])
        const [a, b] = both
        if (a === undefined || b === undefined) throw new Error('two claims')
        await dispose(runId, [used(await hand(a), 1)])
        expect(await book.counts(runId)).toMatchObject({ running: 0, settledUnclaimed: 0, claimed: 1, done: 0 })
        expect(await book.counts(runId, 'a')).toMatchObject({ claimed: 0, done: 1 })
        expect(await book.openRounds(runId)).toEqual([{ groupId, round: 0 }])
        expect(await book.openRounds(runId, 'a')).toEqual([])
        expect(await book.openRounds(runId, 'b')).toEqual([{ groupId, round: 0 }])
        // What one gives back takes nothing from the other.
        await hand(b)
        await book.giveBack(b.id, { incarnation: 1 })
        expect((await claim(runId, { policy: 'a' })).length).toBe(0)
        const again = await one(runId, { policy: 'b' })
        expect(again).toMatchObject({ policy: 'b', again: true })
        await dispose(runId, [used(await hand(again), 1)])
        expect(await book.counts(runId)).toMatchObject({ claimed: 0, done: 1 })
        expect(await book.openRounds(runId)).toEqual([])
      })

      it('count their weights by themselves: ages are of the own, and an attach goes back behind both', async () => {
        const { runId, attach } = await run(1, { policies })
        const announce = (policy: string, ordinal: number) =>
          book.announce(runId, { incarnation: 1, policy, ordinal, label: `${policy}-${ordinal}`, step: null })
        await announce('a', 1)
        await announce('b', 1)
        await announce('a', 2)
        await expect(
          book.announce(runId, { incarnation: 1, policy: 'b', ordinal: 3, label: 'a-2', step: null }),
        ).rejects.toMatchObject({
          code: 'STORE_CONFLICT',
        })
        expect((await book.versions(runId)).map(({ policy, ordinal }) => [policy, ordinal])).toEqual([
          ['a', 1],
          ['b', 1],
          ['a', 2],
        ])
        expect((await book.lastPolicy(runId, 'b'))?.data).toMatchObject({ policy: 'b', version: 1 })
        const [a, b] = await claim(runId, { maxGroups: 2 })
        expect([a?.liveOrdinal, b?.liveOrdinal]).toEqual([2, 1])
        if (a === undefined || b === undefined) throw new Error('two claims')
        await dispose(runId, [used(await hand(a), 5), used(await hand(b), 5)])
        expect(await book.counts(runId)).toMatchObject({ done: 1 })
        await attach(4)
        expect((await claim(runId, { maxGroups: 9, incarnation: 2 })).map(({ policy }) => policy)).toEqual(['a', 'b'])
      })
    })

    describe('ownership', () => {
      it('is of the row that was handed out first, until its claim is over', async () => {
        const { runId, groupIds } = await run()
        const held = await one(runId)
        const row = { rowId: 'a', segmentIds: ['s1', 's2'], labels: [] }
        expect(await handOut(held.id, [row])).toEqual(whole)
        expect(await handOut(held.id, [row])).toEqual(whole)
        const groupId = groupIds[0] ?? ''
        await openRound(runId, groupId, 1)
        await made.catalogue.settleRound(settledOf(runId, groupId, 1))
        const next = await one(runId)
        expect(await handOut(next.id, [{ rowId: 'b', segmentIds: ['s2', 's3'], labels: [] }])).toEqual({
          segmentIds: ['s2'],
          usedRows: [],
        })
        await book.giveBack(next.id, { incarnation: 1 })
        await book.giveBack(held.id, { incarnation: 1 })
        const again = await claim(runId, { maxGroups: 2 })
        expect(again.map(({ round }) => round)).toEqual([0, 1])
        expect(await handOut(again[1]?.id ?? '', [{ rowId: 'b', segmentIds: ['s2', 's3'], labels: [] }])).toEqual(whole)
        expect(await handOut(again[0]?.id ?? '', [row])).toEqual({ segmentIds: ['s2'], usedRows: [] })
      })

      it('stays with a row that was used, when the rest of its claim comes back', async () => {
        const { runId } = await run()
        const held = await one(runId, { leaseMs: 0 })
        const rows = ['a', 'b'].map((rowId) => ({
          rowId: `${held.id}${rowId}`,
          segmentIds: [`${held.id}${rowId}`],
          labels: [],
        }))
        await handOut(held.id, rows)
        expect(await dispose(runId, [used(`${held.id}a`, 1)])).toEqual({ accepted: 1, repeated: 0, claimsDone: [] })
        const again = await one(runId)
        expect(await handOut(again.id, rows)).toEqual({ segmentIds: [], usedRows: [`${held.id}a`] })
        expect(await dispose(runId, [used(`${held.id}b`, 2)])).toMatchObject({ claimsDone: [again.id] })
      })
    })

    describe('dispositions', () => {
      it('end a claim once each of its rows has one, and may be repeated', async () => {
        const { runId } = await run()
        const held = await one(runId)
        const rows = ['x', 'y'].map((letter) => `${held.id}${letter}`)
        await handOut(
          held.id,
          rows.map((rowId) => ({ rowId, segmentIds: [], labels: [] })),
        )
        const [x = '', y = ''] = rows
        expect(await dispose(runId, [used(x, 1)])).toEqual({ accepted: 1, repeated: 0, claimsDone: [] })
        const both = [used(x, 1), { ...used(y, 1), outcome: 'no_signal', advantage: null } as const]
        const done = { claimsDone: [held.id] }
        expect(await dispose(runId, both)).toEqual({ accepted: 1, repeated: 1, ...done })
        expect(await dispose(runId, both)).toEqual({ accepted: 0, repeated: 2, ...done })
        expect(await book.counts(runId)).toMatchObject({ done: 1, claimed: 0 })
        await expect(book.renew(held.id, { incarnation: 1, leaseMs: long })).rejects.toMatchObject(over)
      })

      it('are refused as a whole where one contradicts, uses twice or names no row of the run', async () => {
        const { runId } = await run()
        const { rowId } = await train(runId, 1)
        const conflict = { code: 'STORE_CONFLICT' }
        await expect(dispose(runId, [{ ...used(rowId, 1), advantage: 3 }])).rejects.toMatchObject(conflict)
        await expect(dispose(runId, [used(rowId, 2)])).rejects.toMatchObject(conflict)
        await expect(dispose(runId, [{ ...used(rowId, 2), use: 1 }, used('none', 2)])).rejects.toMatchObject({
          code: 'NOT_FOUND',
        })
        expect(await dispose(runId, [{ ...used(rowId, 2), use: 1 }])).toMatchObject({ accepted: 1 })
        const other = await run()
        await expect(dispose(other.runId, [used(rowId, 1)])).rejects.toMatchObject({ code: 'NOT_FOUND' })
      })

      it('name their claim: one whose lease is over counts until another consumer has the round', async () => {
        const { runId } = await run(2)
        const row = (held: RoundClaim) => ({ rowId: `${held.groupId}:row`, segmentIds: [], labels: [] })
        const late = await one(runId, { leaseMs: 0 })
        await handOut(late.id, [row(late)])
        expect(await dispose(runId, [used(row(late).rowId, 1)])).toMatchObject({ accepted: 1, claimsDone: [late.id] })
        const lost = await one(runId, { leaseMs: 0 })
        await handOut(lost.id, [row(lost)])
        const held = await one(runId, { consumer: 'other' })
        expect(held.groupId).toBe(lost.groupId)
        const said = { ...used(row(lost).rowId, 2), claimId: lost.id }
        const asked = { incarnation: 1, dispositions: [said] }
        await expect(book.dispose(runId, asked)).rejects.toMatchObject(over)
        await handOut(held.id, [row(held)])
        expect(await dispose(runId, [used(row(held).rowId, 2)])).toMatchObject({ claimsDone: [held.id] })
        await expect(book.dispose(runId, asked)).rejects.toMatchObject(over)
        const elsewhere = await run()
        await expect(book.dispose(elsewhere.runId, asked)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      })

      it('end the claim of a round without rows', async () => {
        const { runId } = await run()
        const held = await one(runId)
        await handOut(held.id, [])
        expect(await book.counts(runId)).toMatchObject({ done: 1 })
      })
    })

    describe('incarnations', () => {
      it('fence older ones in everything that they ask', async () => {
        const { runId, attach } = await run(2)
        const held = await one(runId)
        expect(await attach(null)).toMatchObject({ incarnation: 2, again: [held.groupId] })
        const fenced = { code: 'FENCED' }
        await expect(claim(runId)).rejects.toMatchObject(fenced)
        await expect(book.renew(held.id, { incarnation: 1, leaseMs: long })).rejects.toMatchObject(fenced)
        await expect(book.giveBack(held.id, { incarnation: 1 })).rejects.toMatchObject(fenced)
        await expect(dispose(runId, [])).rejects.toMatchObject(fenced)
        await expect(book.checkpoint(runId, { incarnation: 1, step: 1 })).rejects.toMatchObject(fenced)
        await expect(
          book.announce(runId, { incarnation: 1, ordinal: 1, label: 'a', step: null }),
        ).rejects.toMatchObject(fenced)
        const numbers = { incarnation: 1, step: 1, values: {}, mismatch: null }
        await expect(book.putMetrics(runId, numbers)).rejects.toMatchObject(fenced)
        await expect(claim(runId, { incarnation: 3 })).rejects.toMatchObject(fenced)
        expect(await claim(runId, { incarnation: 2 })).toMatchObject([{ groupId: held.groupId, again: true }])
        await expect(book.attach(newId(), { resumeStep: null, consumer: null })).rejects.toMatchObject({
          code: 'NOT_FOUND',
        })
      })

      it('undo the steps behind the checkpoint that they resume from, and hand those groups out again', async () => {
        const { runId, attach } = await run(4)
        await book.announce(runId, { incarnation: 1, ordinal: 1, label: '1', step: null })
        const trained = [await train(runId, 10), await train(runId, 11), await train(runId, 12)]
        expect(await attach(10)).toEqual({
          incarnation: 2,
          resumeStep: 10,
          undone: { dispositions: 2, rows: 2 },
          again: trained.slice(1).map(({ groupId }) => groupId),
          stale: [],
        })
        expect(await book.counts(runId)).toMatchObject({ done: 1, settledUnclaimed: 3 })
        const again = await train(runId, 11, ['1'], 2)
        expect(again).toMatchObject({ groupId: trained[1]?.groupId, again: true })
        // The first trainer's own words of step 10 still stand.
        await expect(dispose(runId, [used(trained[0]?.rowId ?? '', 11)], 2)).rejects.toMatchObject({
          code: 'STORE_CONFLICT',
        })
      })

      it('undo what lies behind the step that they resume from, checkpointed or not, of this lineage and older ones', async () => {
        const { runId, attach } = await run(2)
        await train(runId, 1)
        const lost = await train(runId, 2)
        await book.checkpoint(runId, { incarnation: 1, step: 2 })
        await book.checkpoint(runId, { incarnation: 1, step: 2 })
        expect(await attach(1)).toMatchObject({ undone: { dispositions: 1 }, again: [lost.groupId] })
        // Step 2 comes again, of another lineage: the checkpoint of the older one says nothing of it.
        await train(runId, 2, ['1'], 2)
        expect(await attach(1)).toMatchObject({ undone: { dispositions: 1 }, again: [lost.groupId] })
        expect(await attach(null)).toMatchObject({ undone: { dispositions: 1 } })
        expect(await book.counts(runId)).toMatchObject({ settledUnclaimed: 2, done: 0 })
      })

      it('end groups as stale whose weights are gone with the undone steps', async () => {
        const { runId, attach } = await run(3)
        await book.announce(runId, { incarnation: 1, ordinal: 1, label: '1', step: null })
        await train(runId, 1, ['1'])
        await book.announce(runId, { incarnation: 1, ordinal: 2, label: '2', step: 1 })
        const kept = await train(runId, 2, ['1'])
        const gone = await train(runId, 2, ['2'])
        expect(await attach(0)).toMatchObject({ stale: [gone.groupId] })
        expect((await book.versions(runId)).map((version) => [version.label, version.step, version.gone])).toEqual([
          ['1', null, false],
          ['2', 1, true],
        ])
        expect(await book.counts(runId)).toMatchObject({ stale: 1, settledUnclaimed: 2 })
        expect(groupsOf(await claim(runId, { incarnation: 2, maxGroups: 9 }))).toContain(kept.groupId)
        const refused = { code: 'STORE_CONFLICT' }
        await expect(book.announce(runId, { incarnation: 2, ordinal: 2, label: '2', step: 1 })).rejects.toMatchObject(
          refused,
        )
        await book.announce(runId, { incarnation: 2, ordinal: 2, label: '2b', step: 1 })
        await book.announce(runId, { incarnation: 2, ordinal: 2, label: '2b', step: 1 })
        await expect(book.announce(runId, { incarnation: 2, ordinal: 2, label: '3', step: 1 })).rejects.toMatchObject(
          refused,
        )
      })
    })

    it('knows the LoRA adapters that weights were announced as, oldest first', async () => {
      const { runId, attach } = await run()
      const other = await run()
      const adapter = (name: string, path: string | null) => ({ name, path })
      const say = (ordinal: number, label: string, of: ReturnType<typeof adapter> | null, incarnation = 1) =>
        book.announce(runId, { incarnation, ordinal, label, step: ordinal === 0 ? null : ordinal - 1, adapter: of })
      await say(0, 'base', null)
      await say(1, 'one', adapter('a', '/ckpt/a'))
      await say(2, 'two', adapter('b', null))
      await attach(1)
      await say(3, 'three', adapter('c', '/ckpt/c'), 2)
      const known = [
        { label: 'one', name: 'a', path: '/ckpt/a' },
        { label: 'two', name: 'b', path: null },
        { label: 'three', name: 'c', path: '/ckpt/c' },
      ]
      expect(await book.adapters(runId)).toEqual(known)
      expect(await book.adapters(other.runId)).toEqual([])
    })

    it('puts the numbers of a step together, and marks those of steps that are undone', async () => {
      const { runId, attach } = await run()
      const put = (
        incarnation: number,
        step: number,
        values: Record<string, number>,
        mismatch = null as null | { kl: number },
      ) => book.putMetrics(runId, { incarnation, step, values, mismatch })
      await put(1, 1, { loss: 1 })
      await put(1, 2, { loss: 2, kl: 0 })
      await put(1, 2, { loss: 3 }, { kl: 0.5 })
      await attach(1)
      await put(2, 2, { loss: 4 })
      expect(await book.metrics(runId, { afterStep: 1 })).toEqual([
        { incarnation: 1, step: 2, values: { loss: 3, kl: 0 }, mismatch: { kl: 0.5 }, undone: true },
        { incarnation: 2, step: 2, values: { loss: 4 }, mismatch: null, undone: false },
      ])
      expect(await book.metrics(runId, { afterStep: null })).toHaveLength(3)
    })
  })
}

const over = { code: 'CLAIM_OVER' }
const whole = { segmentIds: [], usedRows: [] }
const nothing = { running: 0, settledUnclaimed: 0, claimed: 0, done: 0, stale: 0, failed: 0 }

const used = (row: string, step: number): Disposition => ({
  row,
  step,
  use: 0,
  outcome: 'used',
  tokens: null,
  advantage: 0.5,
  rewardUsed: 1,
  reason: null,
})

const task: Task = {
  digest: sha256('task'),
  name: 'task',
  environment: 'terminal',
  instruction: 'do',
  split: 'train',
  source: 'test',
  data: {},
}

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

function settledOf(runId: Id, groupId: Id, round: number, state: SettledRound['state'] = 'settled'): SettledRound {
  const none = { members: 0, sampledTokens: 0 }
  const counts = { usable: 0, censored: none, carried: none, neverBegan: 0 }
  return { groupId, runId, round, state, stoppedBy: null, members: [], ...counts }
}
