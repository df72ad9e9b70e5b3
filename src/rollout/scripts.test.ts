import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { type Environment, type ScriptStep, type TaskUser } from '../envs/index.ts'
import { makeTask } from '../core/index.ts'
import type { HostHarness } from './harnesses/contract.ts'
import { defineHarness } from './harnesses/define.ts'
import { postScripts } from './scripts.ts'

const task = makeTask({ name: 't', environment: 'e', instruction: 'Click.', split: 'train', data: {}, source: '' })
const typed = (text: string): ScriptStep => ({ tool: 'computer', args: { text } })
const named = (name: string, steps: readonly ScriptStep[]) => ({ name, weight: 1, script: { steps } })

/** What is posted to the control route of a scripted engine. */
async function posted(
  harness: Partial<HostHarness>,
  oracle: readonly ScriptStep[],
  near: readonly ScriptStep[],
  user: TaskUser | null = null,
): Promise<unknown> {
  const body = Promise.withResolvers<unknown>()
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      body.resolve(JSON.parse(Buffer.concat(parts).toString()))
      response.end('{}')
    })
  })
  const listening = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', listening.resolve)
  await listening.promise
  const address = server.address()
  const control = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  const scripts = { oracle: async () => named('oracle', oracle), distractors: async () => [named('near', near)] }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else of an environment is asked
  const environment = { steps: () => null, user: () => user, agents: () => null, scripts } as unknown as Environment
  const host = defineHarness({
    name: 'host',
    apiVersion: 1,
    version: '1',
    dialect: 'chat',
    place: 'host',
    box: 'tools',
    run: async () => ({ end: 'completed', detail: '', answer: null }),
    ...harness,
  })
  await postScripts({ control, environment, tasks: [task], harness: host, signal: new AbortController().signal })
  server.close()
  return body.promise
}

test('a model that acts in text is given the scripts that do, as answers; any other is given all of them', async () => {
  const oracle = [typed('Action: click'), typed('Action: end'), { say: 'Done.' }]
  const near: readonly ScriptStep[] = [{ tool: 'browser_click', args: { target: 'x' } }, typed('Action: end')]
  expect(await posted({ actsInText: true }, oracle, near)).toEqual({
    scripts: [
      {
        instruction: 'Click.',
        candidates: [{ name: 'oracle', weight: 0, steps: [{ answer: 'Action: click' }, { answer: 'Action: end' }] }],
      },
    ],
  })
  expect(await posted({ actsInText: true }, near, near)).toEqual({ scripts: [] })
  expect(await posted({}, oracle, near)).toMatchObject({
    scripts: [{ candidates: [{ steps: oracle }, { steps: near }] }],
  })
})

test('what a script says to the user of its task ends a turn, or is a call of the tool', async () => {
  const steps: readonly ScriptStep[] = [{ say: 'Which one?' }, typed('x'), { say: 'Done.' }, { say: 'Bye.' }]
  const user: TaskUser = { by: 'record', way: 'any', maxTurns: 3, replies: [] }
  expect(await posted({ converses: true }, steps, steps, user)).toMatchObject({
    scripts: [
      { candidates: [{ steps: [{ answer: 'Which one?' }, typed('x'), { answer: 'Done.' }, { answer: 'Bye.' }] }, {}] },
    ],
  })
  expect(await posted({}, steps, steps, user)).toMatchObject({
    scripts: [
      {
        candidates: [
          {
            steps: [
              { tool: 'ask_user', args: { message: 'Which one?' } },
              typed('x'),
              { tool: 'ask_user', args: { message: 'Done.' } },
              { say: 'Bye.' },
            ],
          },
          {},
        ],
      },
    ],
  })
})
