import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Lab, openLab } from '../lab/lab.ts'
import type { DialectName, Speaker } from '../lab/speaker.ts'

let lab: Lab
beforeAll(async () => {
  lab = await openLab({ model: 'scripted-hermes' })
  await lab.script('Say it thinking.', [
    { think: 'How shall I put it, and in which of many words?' },
    { say: 'Well said.\n' },
  ])
  await lab.script('Say it.', [{ say: 'Well said.\n' }])
  await lab.script('Look.', [{ shell: 'ls' }, { say: 'Seen.' }])
})
afterAll(() => lab[Symbol.asyncDispose]())

/** A conversation of four turns whose first answer goes through `echo` on its way back. */
async function told(
  given: { dialect: DialectName; strategy: 'record' | 'splice'; first: string },
  echo: (speaker: Speaker) => void,
) {
  const rollout = await lab.rollout({ strategy: given.strategy, history: 'sampled' })
  const speaker = rollout.speaker(given.dialect)
  for (const [turn, instruction] of [given.first, 'Look.', 'Say it.'].entries()) {
    speaker.user(instruction)
    for (;;) {
      const said = await rollout.ask(speaker)
      speaker.take(said, 'given')
      if (turn === 0) echo(speaker)
      if (said.calls.length === 0) break
      speaker.results(said, ['a.txt'])
    }
  }
  const { report, forks } = await rollout.judge()
  expect(report.deviations).toEqual([])
  return { forks, rows: report.rows }
}

const trimChat = ({ history }: Speaker): void => {
  const last = history.at(-1)
  expect(last.content).toMatch(/\n$/)
  history[history.length - 1] = { ...last, content: last.content.trim() }
}

const trimMessages = ({ history }: Speaker): void => {
  const last = history.at(-1)
  const content = last.content.map((block: { type: string; text: string }) =>
    block.type === 'text' ? { ...block, text: block.text.trim() } : block,
  )
  expect(content).not.toEqual(last.content)
  history[history.length - 1] = { ...last, content }
}

describe('blanks at the edge of an answer', () => {
  it.each(['splice', 'record'] as const)('are one edit where nothing names the answer (%s)', async (strategy) => {
    expect(await told({ dialect: 'chat', strategy, first: 'Say it.' }, trimChat)).toEqual({
      forks: ['harness_rewrite'],
      rows: 2,
    })
  })

  it('are no edit where the signature of its thinking names the answer', async () => {
    const given = { dialect: 'messages', strategy: 'splice', first: 'Say it thinking.' } as const
    expect(await told(given, trimMessages)).toEqual({ forks: [], rows: 1 })
  })

  it('are the harness’s doing in `record`, where the ids differ', async () => {
    const given = { dialect: 'messages', strategy: 'record', first: 'Say it thinking.' } as const
    expect(await told(given, trimMessages)).toEqual({ forks: ['harness_rewrite'], rows: 2 })
  })
})

describe('causes', () => {
  it('thinking in other tokens is a boundary that merged, not a thinking that was stripped', async () => {
    // This template keeps the thinking of the turn that goes on.
    await using keeping = await openLab({ model: 'scripted-qwen3' })
    await keeping.script('Look.', [{ think: 'How shall I look, and where of many places?' }, { shell: 'ls' }])
    const rollout = await keeping.rollout({ strategy: 'record' })
    await keeping.fault({ kind: 'non_canonical', match: { session: rollout.sessionId } })
    const speaker = rollout.speaker('chat')
    speaker.user('Look.')
    const said = await rollout.ask(speaker)
    speaker.take(said, 'given')
    speaker.results(said, ['a.txt'])
    await rollout.ask(speaker)
    const { forks, report } = await rollout.judge()
    expect(report.deviations).toEqual([])
    expect(forks).toEqual(['boundary_merge'])
  })

  it('another agent over the same history is no compaction', async () => {
    const rollout = await lab.rollout({ strategy: 'splice', history: 'sampled' })
    const speaker = rollout.speaker('chat', 'You are the one who does the work, with a long system prompt. '.repeat(8))
    speaker.user('Look.')
    for (;;) {
      const said = await rollout.ask(speaker)
      speaker.take(said, 'given')
      if (said.calls.length === 0) break
      speaker.results(said, ['a.txt'])
    }
    const other = rollout.speaker('chat', 'Be brief.')
    other.history.push(...speaker.history.slice(1))
    other.user('Say it.')
    other.take(await rollout.ask(other), 'given')
    other.user('Say it.')
    await rollout.ask(other)
    speaker.user('Say it.')
    await rollout.ask(speaker)
    const { forks, report } = await rollout.judge()
    expect(report.deviations).toEqual([])
    expect([forks, report.rows]).toEqual([['harness_rewrite'], 2])
  })
})
