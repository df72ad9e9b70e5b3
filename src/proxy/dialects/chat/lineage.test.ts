import { describe, expect, it } from 'vitest'
import { readLineage } from './lineage.ts'

const title = 'You are a title generator. You output ONLY a thread title. Nothing else.'
const summary = 'You are a context summarization agent. You are given a conversation between a user and an agent.'
const tools = [{ type: 'function', function: { name: 'bash' } }]

/** System prompts as opencode 1.18.33 and pi 0.87.1 begin them; requests without tools and without a header that tells. */
describe('what a request is for, in its own words', () => {
  it.each([
    ['a title of opencode', { content: title }, 'title'],
    ['a compaction of opencode', { content: summary }, 'compact'],
    ['a compaction of pi', { content: summary.replace('agent.', 'assistant.') }, 'compact'],
    ['an agent with tools that is told to make titles', { content: title, tools }, null],
    ['a turn', { content: 'You are opencode, an interactive CLI tool.', tools }, null],
  ])('%s', (_what, { content, ...rest }, requestKind) => {
    const messages = [
      { role: 'system', content },
      { role: 'user', content: 'Count the bees.' },
    ]
    expect(readLineage({}, { messages, ...rest }, null)).toMatchObject({ requestKind })
  })

  it("the harness's own header wins", () => {
    const messages = [{ role: 'system', content: title }]
    expect(readLineage({ 'x-openai-subagent': 'review' }, { messages }, null)).toMatchObject({ requestKind: 'review' })
  })
})
