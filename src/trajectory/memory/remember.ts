/** Writes of memory: each a part of the transaction that records what is remembered, which holds the run. */
import type { Id } from '../../core/index.ts'
import { type Disposition, type MemberOut, passReward, type SettledMember } from '../contract/index.ts'
import { first, type Sql } from '../sql/index.ts'

/** Whose attempts they are. */
export interface RememberedGroup {
  readonly id: Id
  readonly runId: Id
  readonly taskDigest: string
  readonly promptVariant: string
}

type CountedAs = 'number' | 'null' | 'infra' | 'stopped'

interface Attempt {
  readonly counted: CountedAs
  readonly reward: number | null
  readonly tokens: number
  readonly turns: number
}

interface RememberedRow extends Attempt {
  readonly line: number
}

/** Members of a round that has settled, and what was tried in their slots before. A rollout is remembered once. */
export async function rememberRound(
  sql: Sql,
  group: RememberedGroup,
  members: readonly SettledMember[],
  at: number,
): Promise<void> {
  const slots = [...new Set(members.map(({ slot }) => slot))]
  const tried = await sql.all<{ id: Id; record: string }>(
    `SELECT id, record FROM rollouts WHERE "group" = ? AND slot IN (SELECT CAST(value AS INTEGER) FROM ${sql.dialect.list} AS l) ORDER BY n`,
    group.id,
    sql.list(slots),
  )
  const byId = new Map(members.map((member) => [member.rolloutId, member]))
  for (const { id, record } of tried) {
    // Only putRollout writes these.
    const { harness } = JSON.parse(record) as { readonly harness: string }
    await remember(sql, id, { group, harness, member: byId.get(id) ?? null }, at)
  }
}

async function remember(
  sql: Sql,
  rollout: Id,
  of: { readonly group: RememberedGroup; readonly harness: string; readonly member: SettledMember | null },
  at: number,
): Promise<void> {
  const { group, member } = of
  const now = attemptOf(member)
  const before = await remembered(sql, rollout)
  if (before !== undefined) {
    // Late for its round, and a member of a later one: what it is now counts.
    if (member !== null) await recount(sql, rollout, before, now, at)
    return
  }
  const key = [group.runId, group.taskDigest, of.harness, group.promptVariant, member?.weights?.[0] ?? '']
  await sql.all(
    'INSERT INTO memory_lines (run, task, harness, variant, weights) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ...key,
  )
  const line = await first<{ n: number }>(
    sql,
    'SELECT n FROM memory_lines WHERE run = ? AND task = ? AND harness = ? AND variant = ? AND weights = ?',
    ...key,
  )
  if (line === undefined) throw new Error('a line of memory that was just written is there')
  await count(sql, line.n, now, 1, at)
  await sql.all(
    'INSERT INTO remembered (rollout, line, counted, reward, tokens, turns) VALUES (?, ?, ?, ?, ?, ?)',
    rollout,
    line.n,
    now.counted,
    now.reward,
    now.tokens,
    now.turns,
  )
}

/** A verdict came for a rollout; `reward`: of the one that is in force now. Nothing where it is not remembered. */
export async function rememberReward(sql: Sql, rollout: Id, reward: number | null, at: number): Promise<void> {
  const before = await remembered(sql, rollout)
  if (before === undefined || before.counted === 'infra' || before.counted === 'stopped') return
  await recount(sql, rollout, before, { ...before, counted: reward === null ? 'null' : 'number', reward }, at)
}

/**
 * Rows of rollouts by what a trainer did with them. `sign` -1: it was undone. The time of the last use stays then, unless
 * no use is left.
 */
export async function rememberUses(
  sql: Sql,
  said: readonly Pick<Disposition, 'row' | 'outcome'>[],
  sign: 1 | -1,
): Promise<void> {
  const byRollout = Map.groupBy(said, ({ row }) => row.split(':')[0] ?? '')
  for (const [rollout, own] of byRollout) {
    for (const [outcome, rows] of Map.groupBy(own, (one) => one.outcome)) {
      // An outcome is the name of its column.
      await sql.all(
        `UPDATE memory_lines SET ${outcome} = ${outcome} + ? WHERE n = (SELECT line FROM remembered WHERE rollout = ?)`,
        sign * rows.length,
        rollout,
      )
    }
    if (own.every(({ outcome }) => outcome !== 'used')) continue
    const last = sign === 1 ? sql.dialect.now : 'CASE WHEN used = 0 THEN 0 ELSE used_at END'
    await sql.all(
      `UPDATE memory_lines SET used_at = ${last} WHERE n = (SELECT line FROM remembered WHERE rollout = ?)`,
      rollout,
    )
  }
}

function remembered(sql: Sql, rollout: Id): Promise<RememberedRow | undefined> {
  return first<RememberedRow>(
    sql,
    'SELECT line, counted, reward, tokens, turns FROM remembered WHERE rollout = ?',
    rollout,
  )
}

async function recount(sql: Sql, rollout: Id, before: RememberedRow, now: Attempt, at: number): Promise<void> {
  await count(sql, before.line, before, -1, at)
  await count(sql, before.line, now, 1, at)
  await sql.all('UPDATE remembered SET counted = ?, reward = ? WHERE rollout = ?', now.counted, now.reward, rollout)
}

async function count(sql: Sql, line: number, one: Attempt, sign: 1 | -1, at: number): Promise<void> {
  const is = (counted: CountedAs): number => (one.counted === counted ? sign : 0)
  const reward = one.reward ?? 0
  // What was stopped or failed is shorter than it would have been.
  const ended = Math.abs(is('number') + is('null'))
  await sql.all(
    `UPDATE memory_lines SET attempts = attempts + ?, numbers = numbers + ?, passed = passed + ?, nulls = nulls + ?,
       infra = infra + ?, stopped = stopped + ?, tokens = tokens + ?, turns = turns + ?,
       most_tokens = CASE WHEN most_tokens < ? THEN ? ELSE most_tokens END,
       reward_sum = reward_sum + ?, reward_squares = reward_squares + ?, last_at = ? WHERE n = ?`,
    sign,
    is('number'),
    one.counted === 'number' && reward >= passReward ? sign : 0,
    is('null'),
    is('infra'),
    is('stopped'),
    sign * ended * one.tokens,
    sign * ended * one.turns,
    ended * one.tokens,
    ended * one.tokens,
    is('number') * reward,
    is('number') * reward ** 2,
    at,
    line,
  )
}

/** Null: another attempt of its slot was made after it, as is done where something of ours failed. */
function attemptOf(member: SettledMember | null): Attempt {
  if (member === null) return { counted: 'infra', reward: null, tokens: 0, turns: 0 }
  const counted = countedAs(member.out)
  const reward = counted === 'number' ? (member.verdict?.reward ?? null) : null
  return { counted, reward, tokens: member.sampledTokens, turns: member.turns ?? 0 }
}

function countedAs(out: MemberOut | null): CountedAs {
  switch (out) {
    case null:
      return 'number'
    case 'no_number':
    case 'late':
      return 'null'
    case 'infra':
    case 'tainted':
      return 'infra'
    case 'censored':
    case 'cancelled':
      return 'stopped'
  }
}
