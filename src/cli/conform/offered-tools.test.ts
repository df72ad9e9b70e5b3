import { describe, expect, test } from 'vitest'
import { intentFact, sessionFact } from '../../testing/store/index.ts'
import { agentTool } from './offered-tools.ts'

const other = { name: 'bash', parameters: { type: 'object', properties: { command: { type: 'string' } } } }
const text = { type: 'string' }
const paths = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  gemini: '/v1beta/models/m1:generateContent',
} as const
const asked = {
  chat: { messages: [{ role: 'user', content: 'hi' }] },
  responses: { input: 'hi' },
  messages: { messages: [{ role: 'user', content: 'hi' }] },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
} as const
const role = { type: 'string', enum: ['explore', 'build'] }

/** Tools as the dialects write them down; names and parameters in the manner of the harnesses. */
describe('the tool that starts another agent', () => {
  test.each<[keyof typeof asked, string, readonly object[], object | null]>([
    [
      'chat',
      'opencode',
      [
        { type: 'function', function: other },
        {
          type: 'function',
          function: {
            name: 'task',
            description: 'general: for research',
            parameters: {
              type: 'object',
              properties: { description: text, prompt: text, subagent_type: text },
              required: ['description', 'prompt', 'subagent_type'],
            },
          },
        },
      ],
      { name: 'task', args: { description: 'conformance probe', prompt: 'do it', subagent_type: 'general' } },
    ],
    [
      'chat',
      'Cline',
      [
        {
          type: 'function',
          function: { name: 'spawn_agent', parameters: { properties: { systemPrompt: text, task: text } } },
        },
      ],
      { name: 'spawn_agent', args: { systemPrompt: expect.any(String), task: 'do it' } },
    ],
    [
      'messages',
      'Claude Code',
      [
        {
          name: 'Agent',
          description: 'general-purpose: anything',
          input_schema: { properties: { prompt: text, subagent_type: text } },
        },
      ],
      { name: 'Agent', args: { prompt: 'do it', subagent_type: 'general-purpose' } },
    ],
    [
      'responses',
      'Codex',
      [
        { type: 'web_search' },
        { type: 'function', name: 'spawn_agent', parameters: { properties: { message: text } } },
      ],
      { name: 'spawn_agent', args: { message: 'do it' } },
    ],
    [
      'gemini',
      'Gemini CLI',
      [
        {
          functionDeclarations: [
            other,
            { name: 'invoke_agent', parametersJsonSchema: { properties: { objective: text, agent_name: role } } },
          ],
        },
      ],
      { name: 'invoke_agent', args: { objective: 'do it', agent_name: 'explore' } },
    ],
    ['chat', 'a shell alone', [{ type: 'function', function: other }], null],
  ])('%s of %s', (dialect, _harness, tools, expected) => {
    const session = sessionFact()
    const body = { ...asked[dialect], model: 'm1', max_tokens: 9, tools }
    const intent = intentFact(session.id, 0, JSON.stringify(body), { dialect, path: paths[dialect] })
    const call = { intent, commit: null, delivery: 'unknown', superseded: false } as const
    const log = { session, closedAt: null, calls: [call], segments: [], spans: [], events: [] }
    expect(agentTool(log, call, 'do it')).toEqual(expected)
  })
})
