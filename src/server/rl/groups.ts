import { z } from 'zod'
import { PaddockError, present } from '../../core/index.ts'
import { groupSpec, libraryLeftBy } from '../../rollout/index.ts'
import { type GroupLibrary, type GroupSpec, onCuts, type RoundView } from '../../trajectory/index.ts'
import { injections } from '../injections.ts'
import { recordedName } from '../recorded-name.ts'
import { nothing, type RlApi, written } from './api.ts'
import type { RlParts } from './contract.ts'
import { countOf, labels, name, task } from './shapes.ts'

const onCut = z.enum(onCuts).optional()

/** Each member that Paddock does is a job from the start. */
const mostMembers = 100_000

export const specShape = {
  n: z.int().min(1).max(mostMembers),
  over: z.int().min(0).max(mostMembers).optional(),
  min_usable: z.int().min(0).optional(),
  top_up: z.int().min(0).max(mostMembers).optional(),
  stop_when: z
    .union([z.strictObject({ usable: z.int().min(1) }), z.enum(['deadline', 'any_pass', 'variance'])])
    .transform((when) =>
      typeof when === 'string' ? ({ kind: when } as const) : ({ kind: 'usable', count: when.usable } as const),
    )
    .optional(),
  carry: z.boolean().optional(),
  deadline_s: z.number().gt(0).nullable().optional(),
  horizon: z.int().min(1).nullable().optional(),
  inject: injections.optional(),
  labels: labels.optional(),
  on_cut: z
    .strictObject({ horizon: onCut, budget: onCut, context_overflow: onCut, agent_timeout: onCut })
    .transform(present)
    .optional(),
}

export const priority = z.int().min(-1000).max(1000).default(0)

const group = z.strictObject({
  group_id: recordedName,
  task,
  prompt_variant: z.string().default('default'),
  priority,
  /** What its members find in `/library`: nothing yet, or what a rollout left there. Absent: there is none, and none is kept. */
  library: z.union([z.literal('empty'), z.strictObject({ rollout: name })]).optional(),
  ...specShape,
})
const groupsBody = z.strictObject({ groups: z.array(group).min(1).max(10_000) })

const roundState = z.enum(['running', 'settled', 'failed'])
export const round = z.strictObject({
  group_id: name,
  round: z.int(),
  state: roundState,
  members: z.int(),
  usable: z.int().nullable(),
  carried: z.int().nullable(),
})
const taken = z.strictObject({
  accepted: z.array(round),
  refused: z.array(name),
  capacity: z.strictObject({ groups: z.int().nullable(), taken: z.int() }),
})
const groupAnswer = z.strictObject({ group_id: name, run_id: name, rounds: z.array(round) })
const cancelled = z.strictObject({
  settled: z.strictObject({ round: z.int(), state: z.enum(['settled', 'failed']), usable: z.int() }).nullable(),
})

/** Asked again after so long there may be room. */
const retryAfterS = 1

/** Groups of a run: asked for, gone on with, stopped. */
export function groupRoutes(api: RlApi, { runs, groups: atWork, reader }: RlParts): void {
  const submitting = {
    name: 'submitGroups',
    says: 'Asks for groups',
    body: groupsBody,
    lines: groupsOf,
    status: 202,
    answer: taken,
    refusals: { 429: taken },
  }
  api.add('post', '/runs/:id/groups', submitting, async ({ response, params, body: { groups } }) => {
    const wanted = await Promise.all(
      groups.map(async ({ group_id: id, task: named, prompt_variant: promptVariant, priority, library, ...spec }) => ({
        id,
        task: named,
        promptVariant,
        priority,
        spec: library === undefined ? specOf(spec) : withLibrary(specOf(spec), await libraryOf(reader, library)),
      })),
    )
    const { accepted, refused, capacity } = await runs.submit(params.id, wanted)
    const answer = { accepted: accepted.map((one) => roundView(one.id, one.round)), refused, capacity }
    if (refused.length === 0) return answer
    const full = new PaddockError('RUN_FULL', `there is no room for ${refused.length} of ${groups.length} groups`)
    response
      .set('retry-after', String(retryAfterS))
      .status(full.status)
      .json({ error: full, ...answer })
    return written
  })
  const looking = { name: 'group', says: 'The rounds of a group', answer: groupAnswer }
  api.add('get', '/groups/:id', looking, async ({ params }) => {
    const found = await reader.catalogue.group(params.id)
    const rounds = await reader.catalogue.rounds(found.id)
    return { group_id: found.id, run_id: found.runId, rounds: rounds.map((one) => roundView(found.id, one)) }
  })
  const body = z.strictObject(specShape)
  const opening = { name: 'openRound', says: 'Opens a further round of a group', body, status: 201, answer: round }
  api.add('post', '/groups/:id/rounds', opening, async ({ params, body: spec }) => {
    const library = (await reader.catalogue.rounds(params.id))[0]?.spec.library
    const asked = library === undefined ? specOf(spec) : withLibrary(specOf(spec), library)
    return roundView(params.id, await runs.openRound(params.id, asked))
  })
  const cancelling = { name: 'cancelGroup', says: 'Stops what goes on of a group', body: nothing, answer: cancelled }
  api.add('post', '/groups/:id/cancel', cancelling, async ({ params }) => {
    const settled = await atWork.cancel(params.id)
    return { settled: settled === null ? null : { round: settled.round, state: settled.state, usable: settled.usable } }
  })
}

/** Lines of JSON are as good as a list. */
function groupsOf(text: string): unknown {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return {
    groups: lines.map((line, at): unknown => {
      try {
        return JSON.parse(line)
      } catch {
        throw new PaddockError('BODY_INVALID_JSON', `line ${countOf(String(at + 1), 'line')} is no JSON`)
      }
    }),
  }
}

export function specOf(asked: z.infer<z.ZodObject<typeof specShape>>) {
  const {
    min_usable: minUsable,
    stop_when: stopWhen,
    top_up: topUp,
    deadline_s: deadlineS,
    on_cut: cuts,
    ...rest
  } = asked
  const deadlineMs = deadlineS === undefined || deadlineS === null ? deadlineS : Math.round(deadlineS * 1000)
  return groupSpec(present({ ...rest, minUsable, topUp, stopWhen, deadlineMs, onCut: cuts }))
}

async function libraryOf(
  { recorder }: RlParts['reader'],
  asked: 'empty' | { readonly rollout: string },
): Promise<GroupLibrary> {
  return asked === 'empty' ? { sha256: null, from: null } : libraryLeftBy(recorder, asked.rollout)
}

/** Its rollouts tell the library that they began with, as those of a chain do. */
function withLibrary(spec: GroupSpec, library: GroupLibrary): GroupSpec {
  return { ...spec, library, labels: { ...spec.labels, library: library.sha256 ?? 'empty' } }
}

export function roundView(groupId: string, { round: number, slots, settled }: RoundView) {
  return {
    group_id: groupId,
    round: number,
    state: settled?.state ?? ('running' as const),
    members: slots.length,
    usable: settled?.usable ?? null,
    carried: settled?.carried.members ?? null,
  }
}
