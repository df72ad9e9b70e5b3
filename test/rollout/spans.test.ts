import { trace } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { terminal } from '../../src/envs/index.ts'
import { referenceAgent } from '../../src/rollout/index.ts'
import { model, openWorld, terminalTask, type World } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

describe.runIf(await requireDocker())('spans of a rollout, for whoever registers an OpenTelemetry SDK', () => {
  const exporter = new InMemorySpanExporter()
  let world: World
  let task: Task

  beforeAll(async () => {
    world = await openWorld()
    task = await terminalTask('log-forensics')
    await world.script(task, (await terminal.scripts.oracle(task)).script.steps)
  })
  afterAll(async () => {
    trace.disable()
    await world[Symbol.asyncDispose]()
  })

  test('one trace: the agent, its stages, its calls and tools under it, and the verdict; no word of the conversation', async () => {
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
    const summary = await world.run({ tasks: [task], harness: referenceAgent() })
    const [rollout] = summary.rollouts
    expect(rollout).toMatchObject({ end: 'completed', verdict: { reward: 1 } })
    const spans = exporter.getFinishedSpans()
    const named = (start: string) => spans.filter(({ name }) => name.startsWith(start))

    const [root] = named('invoke_agent')
    expect(root).toMatchObject({
      name: 'invoke_agent reference',
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': 'reference',
        'paddock.rollout.id': rollout?.rolloutId,
        'paddock.run.id': summary.runId,
        'paddock.task.name': task.name,
        'paddock.rollout.end': 'completed',
      },
      events: [
        {
          name: 'gen_ai.evaluation.result',
          attributes: { 'gen_ai.evaluation.score.label': 'scored', 'gen_ai.evaluation.score.value': 1 },
        },
      ],
    })
    const under = spans.filter((span) => span !== root)
    expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(1)
    expect(new Set(under.map((span) => span.parentSpanContext?.spanId))).toEqual(new Set([root?.spanContext().spanId]))
    expect(named('paddock.stage').map(({ name }) => name.slice('paddock.stage '.length))).toEqual(
      expect.arrayContaining(['queue', 'boot', 'setup', 'agent', 'collect', 'verify']),
    )

    const calls = named('chat')
    expect(calls.length).toBe(rollout?.calls)
    const tokens = calls.map(({ attributes }) => Number(attributes['gen_ai.usage.output_tokens']))
    expect(tokens.reduce((sum, count) => sum + count, 0)).toBe(rollout?.sampledTokens)
    expect(calls[0]).toMatchObject({
      name: `chat ${model}`,
      attributes: { 'gen_ai.provider.name': 'vllm', 'gen_ai.request.model': model, 'paddock.call.class': 'main' },
    })
    expect(named('execute_tool')[0]?.attributes).toMatchObject({ 'gen_ai.tool.name': 'shell' })

    const written = JSON.stringify(spans.map(({ name, attributes, events }) => ({ name, attributes, events })))
    expect(written).not.toContain(task.instruction.slice(0, 30))
    expect(written).not.toMatch(/pdk_|grep|cat /)
  })

  test('without one, nothing is made', async () => {
    trace.disable()
    exporter.reset()
    const summary = await world.run({ tasks: [task], harness: referenceAgent() })
    expect(summary.rollouts).toMatchObject([{ end: 'completed' }])
    expect(exporter.getFinishedSpans()).toEqual([])
  })
})
