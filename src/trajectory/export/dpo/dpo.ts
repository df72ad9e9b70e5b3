import { z } from 'zod'
import type { ExportRollout } from '../../rows-contract.ts'
import { defineExporter, type Exporter } from '../contract.ts'
import { isMain } from '../conversation.ts'
import { jsonLine } from '../json-line.ts'
import { noNeeds } from '../needs.ts'
import { type NoPair, preferenceLine, type Told } from './pair.ts'

const optionsSchema = z.strictObject({
  /** Pairs whose rewards differ by less are left out. */
  minMargin: z.number().min(0).default(0),
})

/** A member of a group, as far as a pair needs it. */
interface Candidate extends Told {
  readonly rolloutId: string
  readonly reward: number
}

/** Why a group gives no pair. */
type LeftOut = 'one_member' | 'equal_rewards' | 'small_margin' | 'other_tools' | NoPair

/**
 * Preference pairs: `pairs.jsonl`, one line per group with its best and its worst rollout, in the shape that TRL's `DPOTrainer` reads
 * (huggingface.co/docs/trl/dataset_formats, v0.24, preference with an explicit prompt, conversational, with `tools`). `prompt` is what
 * both were told before their answers differ, so that a forked group compares the answers behind the fork. Groups without a pair are
 * named in `left_out.jsonl`. Documented, not run.
 */
export const dpoExporter: Exporter = defineExporter({
  name: 'dpo',
  version: '1.0.0',
  summary: 'Best and worst rollout of each group as preference pairs for DPO, as JSON lines.',
  needs: 'messages',
  purpose: 'sft',
  trainer: noNeeds,
  files: ['pairs.jsonl', 'left_out.jsonl'],
  options: optionsSchema,
  accept: (exported, row) => (exported.verdict?.reward === null || !isMain(row) ? 'class' : null),
  async write(rollouts, sink, { minMargin }) {
    const [pairs, leftOut] = [await sink.open('pairs.jsonl'), await sink.open('left_out.jsonl')]
    let group: ExportRollout['group'] | null = null
    let task = ''
    let members: readonly Candidate[] = []
    let count = 0
    const flush = async (): Promise<void> => {
      if (group === null) return
      const about = { group_id: group.id, task }
      const found = pairOf(members, minMargin)
      const made =
        typeof found === 'string'
          ? found
          : preferenceLine(found.chosen, found.rejected, {
              ...about,
              reward_chosen: found.chosen.reward,
              reward_rejected: found.rejected.reward,
              margin: found.chosen.reward - found.rejected.reward,
              rollout_chosen: found.chosen.rolloutId,
              rollout_rejected: found.rejected.rolloutId,
            })
      if (typeof made === 'string') await leftOut.write(jsonLine({ ...about, members: count, reason: made }))
      else await pairs.write(made.line)
    }
    // The members of a group come one after another.
    for await (const exported of rollouts) {
      if (exported.group.id !== group?.id) {
        await flush()
        group = exported.group
        task = exported.taskName
        members = []
        count = 0
      }
      // Of several rows the last one holds what the rollout came to.
      const conversation = exported.conversations.at(-1)
      const reward = exported.verdict?.reward ?? null
      if (conversation === undefined || reward === null) continue
      const { messages, tools } = conversation
      const candidate = { rolloutId: exported.rollout.id, reward, messages, tools }
      count += 1
      members = extremes([...members, candidate])
    }
    await flush()
  },
})

/** The best and the worst, the earlier of equal ones. */
function extremes(members: readonly Candidate[]): readonly Candidate[] {
  const sorted = members.toSorted((one, other) => other.reward - one.reward)
  const [best] = sorted
  const worst = sorted.find(({ reward }) => reward === sorted.at(-1)?.reward)
  return best === undefined || worst === undefined || best === worst ? sorted.slice(0, 2) : [best, worst]
}

function pairOf(
  members: readonly Candidate[],
  minMargin: number,
): { readonly chosen: Candidate; readonly rejected: Candidate } | LeftOut {
  const [chosen, rejected] = members
  if (chosen === undefined || rejected === undefined) return 'one_member'
  const margin = chosen.reward - rejected.reward
  if (margin === 0) return 'equal_rewards'
  if (margin < minMargin) return 'small_margin'
  if (chosen.tools !== rejected.tools) return 'other_tools'
  return { chosen, rejected }
}
