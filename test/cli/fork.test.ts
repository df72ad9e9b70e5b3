/** `paddock fork` and `paddock show --tree`, on a real store and in real boxes. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import type { RunSummary } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

const task = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
const directory = tempDir()

it.runIf(await requireDocker())(
  'goes on from a rollout as it was asked for, and its tree is shown with values',
  async () => {
    const data = ['--data', join(directory, 'data')]
    const rolloutsOf = ({ out }: { readonly out: string }) =>
      (JSON.parse(out) as { summary: RunSummary }).summary.rollouts
    const [parent] = rolloutsOf(await paddock(['run', task, '--harness', 'reference', '--n', '1', '--json', ...data]))
    if (parent === undefined) throw new Error('no rollout')
    const short = parent.rolloutId.slice(-8)
    const children = rolloutsOf(await paddock(['fork', short, '--at', '2', '--n', '2', '--json', ...data]))
    expect(children.map(({ end, harness, calls }) => [end, harness, calls])).toEqual([
      ['completed', 'reference', parent.calls],
      ['completed', 'reference', parent.calls],
    ])
    const { out: tree } = await paddock(['show', children[0]?.rolloutId ?? '', '--tree', ...data])
    const rewards = [parent, ...children].map(({ verdict }) => verdict?.reward ?? Number.NaN)
    const mean = rewards.reduce((sum, one) => sum + one, 0) / 3
    expect(tree.split('\n').slice(0, 2)).toEqual([
      `${short}  reward ${rewards[0] ?? ''}  ${parent.calls} calls`,
      `  at call 2  value ${mean.toFixed(3)} of 3 rollouts`,
    ])
    const { out: shown } = await paddock(['show', children[0]?.rolloutId ?? '', ...data])
    expect(shown).toMatch(/call 0 .* replayed \d+/)
    expect(shown).toContain('the fork begins')
    // What was replayed is an answer in every format, and trained in none.
    const group = ['--group', children[0]?.groupId ?? '', ...data]
    const lines = async (format: string, file: string) => {
      const directoryOf = join(directory, format)
      const ended = await paddock(['export', '--format', format, '--out', directoryOf, ...group])
      expect([ended.code, ended.err]).toEqual([0, ended.err])
      return (await readFile(join(directoryOf, file), 'utf8')).trim().split('\n')
    }
    for (const line of await lines('openai', 'messages.jsonl')) {
      const { messages } = JSON.parse(line) as { messages: readonly { role: string; weight?: number }[] }
      const weights = messages.filter(({ role }) => role === 'assistant').map(({ weight }) => weight ?? 1)
      expect(weights).toEqual([0, ...Array.from({ length: parent.calls - 1 }, () => 1)])
    }
    const { out: found } = await paddock(['fsck', ...data])
    expect(found).toContain('no problems')
    const refused = await paddock(['fork', short, '--at', '77', ...data])
    expect([refused.code, refused.err]).toEqual([expect.any(Number), expect.stringContaining('FORK_REFUSED')])
  },
)
