/** An export format: one JSON line per row with its messages and the reward. Listed under `exporters`. */
import { defineExporter, noNeeds, z } from 'paddock-rl/exporter'

export default defineExporter({
  name: 'transcripts',
  version: '1.0.0',
  summary: 'One JSON line per row: task, reward, messages.',
  needs: 'messages',
  purpose: 'sft',
  trainer: noNeeds,
  files: ['transcripts.jsonl'],
  options: z.strictObject({ minReward: z.number().default(0) }),
  accept: ({ verdict }, _row, { minReward }) => ((verdict?.reward ?? 0) < minReward ? 'filtered' : null),
  async write(rollouts, sink, { minReward }) {
    const file = await sink.open('transcripts.jsonl')
    for await (const { taskName, verdict, conversations } of rollouts) {
      if ((verdict?.reward ?? 0) < minReward) continue
      const head = JSON.stringify({ task: taskName, reward: verdict?.reward ?? null }).slice(0, -1)
      // The messages are JSON texts as they were recorded: they are written as they are, not parsed.
      for (const { messages } of conversations) await file.write(`${head},"messages":[${messages.join(',')}]}\n`)
    }
  },
})
