import { expect, it } from 'vitest'
import { z } from 'zod'
import { type EventBody, makeTask, PaddockError } from '../core/index.ts'
import type { Box } from '../sandbox/index.ts'
import type { ToolOutcome } from './contract.ts'
import type { Deferral } from './deferral.ts'
import { DeferredTools } from './deferred.ts'
import { defineTool } from './tool.ts'
import { virtualTool } from './virtual-tool.ts'

const task = makeTask({ name: 't', environment: 'e', instruction: 'i', split: 'train', data: {}, source: '' })
const context = () => ({
  task,
  attempt: { id: 'one' },
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- none of these tools goes near a box
  box: null as unknown as Box,
  signal: new AbortController().signal,
})

/** Tools `slow`, which answers later, and `look`, which answers at once. `works` ends the work of the calls of `slow`, in order. */
function tools(how: Deferral | null) {
  const works: { end(outcome: ToolOutcome): void; readonly signal: AbortSignal }[] = []
  const slow = defineTool({
    name: 'slow',
    description: 'Takes its time.',
    input: z.object({ name: z.string() }),
    deferred: () => how,
    run: ({ signal }) => {
      const { promise, resolve, reject } = Promise.withResolvers<ToolOutcome>()
      signal.addEventListener('abort', () => reject(signal.reason))
      works.push({ end: resolve, signal })
      return promise
    },
  })
  const look = virtualTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    record: [{ args: {}, text: 'nothing new' }],
  })
  const events: Extract<EventBody, { kind: 'deferred_result' }>[] = []
  const deferred = new DeferredTools([slow, look], (event) => {
    if (event.kind === 'deferred_result') events.push(event)
  })
  const call = async (name: string, args: object): Promise<ToolOutcome> => {
    const tool = deferred.tools.find((one) => one.name === name)
    if (tool === undefined) throw new Error(`no tool ${name}`)
    return tool.run(context(), args)
  }
  return { deferred, works, events, call }
}

it('a call is answered with a handle, and its result is asked for once its work is done', async () => {
  const { works, events, call } = tools({ after: 'done', comes: 'asked' })
  expect(await call('slow', { name: 'a' })).toMatchObject({ status: 'ok', facts: { handle: 'job-1' } })
  expect(await call('slow', { wrong: 1 })).toMatchObject({ status: 'error' })
  expect((await call('get_result', { handle: 'job-1' })).text).toBe('job-1 is not done yet.')
  expect(await call('get_result', { handle: 'job-2' })).toMatchObject({ status: 'error', text: 'There is no job-2.' })
  const waiting = call('get_result', { handle: 'job-1', wait_sec: 60 })
  works[0]?.end({ status: 'error', text: 'it went wrong', facts: { size: 3 } })
  expect(await waiting).toMatchObject({ status: 'error', text: 'it went wrong', facts: { size: 3, handle: 'job-1' } })
  expect(events).toMatchObject([{ handle: 'job-1', tool: 'slow', came: 'asked', status: 'error', lateCalls: 4 }])
  expect((await call('get_result', { handle: 'job-1' })).text).toBe('job-1 was answered already.')
  expect(events).toHaveLength(1)
})

it('a result that comes after so many calls is told behind the answer of one, each once', async () => {
  const { works, events, call } = tools({ after: { calls: 2 }, comes: 'told' })
  await call('slow', { name: 'a' })
  works[0]?.end({ status: 'ok', text: 'ready' })
  expect((await call('look', {})).text).toBe('nothing new')
  expect((await call('look', {})).text).toBe('nothing new\n\n[job-1, slow: ok]\nready')
  expect((await call('look', {})).text).toBe('nothing new')
  expect(events).toMatchObject([{ came: 'told', status: 'ok', lateCalls: 2 }])
})

it('a result that never comes is a timeout of its own kind, once it is due', async () => {
  const { works, events, call } = tools({ after: { calls: 2 }, comes: 'asked', lost: true })
  await call('slow', { name: 'a' })
  expect((await call('get_result', { handle: 'job-1' })).text).toBe('job-1 is not done yet.')
  expect(await call('get_result', { handle: 'job-1' })).toMatchObject({
    status: 'timeout',
    text: expect.stringMatching(/is lost/),
  })
  expect(works).toEqual([])
  expect(events).toMatchObject([{ came: 'lost', status: 'timeout', lateCalls: 2 }])
  const late = tools({ after: 'done', comes: 'asked', withinMs: 1 })
  await late.call('slow', { name: 'a' })
  expect(await late.call('get_result', { handle: 'job-1', wait_sec: 60 })).toMatchObject({ status: 'timeout' })
  expect(late.works[0]?.signal.aborted).toBe(true)
  expect(late.events).toMatchObject([{ came: 'expired', status: 'timeout' }])
})

it('work that nobody waited for ends with its stage, and a fault in it is not lost', async () => {
  const { deferred, works, events, call } = tools({ after: 'done', comes: 'asked' })
  await call('slow', { name: 'a' })
  await call('slow', { name: 'b' })
  works[1]?.end({ status: 'ok', text: 'unheard' })
  expect(await deferred.close()).toBeNull()
  expect(works[0]?.signal.aborted).toBe(true)
  expect(events).toMatchObject([
    { handle: 'job-1', came: 'unread', status: null },
    { handle: 'job-2', came: 'unread', status: 'ok' },
  ])
  // A further stage of the same attempt.
  await call('slow', { name: 'c' })
  const fault = new PaddockError('VIRTUAL_TOOL_FAILED', 'out')
  works[2]?.end({ status: 'infra', text: 'out', fault })
  expect(await deferred.close()).toBe(fault)
  await call('slow', { name: 'd' })
  works[3]?.end({ status: 'infra', text: 'out', fault })
  await Promise.resolve()
  expect(await call('look', {})).toMatchObject({ status: 'infra', fault })
})

it('a call may be answered at once, and no tool of the task has the name of ours', async () => {
  const { works, call } = tools(null)
  const slow = call('slow', { name: 'a' })
  works[0]?.end({ status: 'ok', text: 'at once' })
  expect((await slow).text).toBe('at once')
  const own = defineTool({
    name: 'get_result',
    description: '.',
    input: z.object({}),
    deferred: () => null,
    run: async () => ({ status: 'ok', text: '' }),
  })
  expect(() => new DeferredTools([own], () => undefined)).toThrow(/A tool is named get_result/)
})
