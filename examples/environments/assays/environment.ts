/**
 * A laboratory that answers later: each assay is ordered, its result comes some calls afterwards, and some never come. Who orders one
 * after the other and waits for each runs out of calls. docs/guides/tools-that-answer-later.md explains it.
 */
import type { EnvironmentKit } from '../../../src/envs/index.ts'

const name = 'assays'
const version = '1'
const labelsPath = '/paddock/labels.json'

export default ({ z, defineEnvironment, defineTool, perAttempt, loadJsonTasks, scored, sha256 }: EnvironmentKit) => {
  const data = z.strictObject({
    /** What each sample measures. */
    samples: z.record(z.string().regex(/^[a-z]\d$/), z.int()),
    /** Samples whose first assay never comes. */
    lost: z.array(z.string()),
    /** Calls of tools after which a result is there. */
    calls: z.int().min(1).max(20),
    /** Calls of tools in all; further ones do nothing. */
    budget: z.int().min(1),
  })
  type Data = ReturnType<typeof data.parse>

  const stateOf = perAttempt(() => ({
    orders: new Map<string, number>(),
    labels: {} as Record<string, number>,
    used: 0,
  }))
  const noSuch = (sample: string) => ({ status: 'error' as const, text: `There is no sample ${sample}.` })

  const toolsOf = ({ samples, lost, calls, budget }: Data) => {
    /** A call of the laboratory's; false: all have been made. */
    const mayCall = (context: Parameters<typeof stateOf>[0]) => (stateOf(context).used += 1) <= budget
    const sample = z.string().describe('Such as a1.')
    const order = defineTool({
      name: 'order_assay',
      description:
        'Orders the assay of a sample. Its result comes later, or gets lost; then it has to be ordered again.',
      input: z.object({ sample }),
      deferred: (context, input) => {
        if (samples[input.sample] === undefined || stateOf(context).used >= budget) return null
        const { orders } = stateOf(context)
        const nth = (orders.get(input.sample) ?? 0) + 1
        orders.set(input.sample, nth)
        const isLost = nth === 1 && lost.includes(input.sample)
        if (isLost) mayCall(context)
        return { after: { calls }, comes: 'asked', ...(isLost ? { lost: true as const } : {}) }
      },
      run: async (context, input) => {
        const value = samples[input.sample]
        if (!mayCall(context)) return { status: 'error', text: 'The laboratory is closed.' }
        return value === undefined ? noSuch(input.sample) : { status: 'ok', text: `${input.sample} measures ${value}` }
      },
    })
    const label = defineTool({
      name: 'label',
      description: 'Writes on a sample what it measures.',
      input: z.object({ sample, value: z.int() }),
      run: async (context, input) => {
        if (!mayCall(context)) return { status: 'error', text: 'The laboratory is closed.' }
        if (samples[input.sample] === undefined) return noSuch(input.sample)
        stateOf(context).labels[input.sample] = input.value
        return { status: 'ok', text: 'labelled' }
      },
    })
    return [order, label]
  }

  const order = (sample: string) => ({ tool: 'order_assay', args: { sample } })
  const ask = (job: number) => ({ tool: 'get_result', args: { handle: `job-${job}` } })
  const label = (sample: string, value: number) => ({ tool: 'label', args: { sample, value } })

  /** Orders all, asks for all, orders what was lost again, and labels. */
  const solved = ({ samples, lost, calls }: Data) => {
    const names = Object.keys(samples)
    const again = names.filter((one) => lost.includes(one))
    const labelled = (some: readonly string[]) => some.map((one) => label(one, samples[one] ?? 0))
    const asked = names.map((_, at) => ask(at + 1))
    // Until the first is due, and then until those that were ordered again are.
    const wait = (since: number, job: number) => Array.from({ length: Math.max(0, calls - since) }, () => ask(job))
    const kept = names.filter((one) => !lost.includes(one))
    return [
      ...names.map(order),
      ...wait(names.length, names.length),
      ...asked,
      ...again.map(order),
      ...labelled(kept),
      ...wait(kept.length + again.length, names.length + again.length),
      ...again.map((_, at) => ask(names.length + at + 1)),
      ...labelled(again),
      { say: 'All samples are labelled.' },
    ]
  }

  return defineEnvironment({
    name,
    apiVersion: 1,
    verifierVersion: version,
    task: data,
    load: (path, options) => loadJsonTasks(path, { ...options, environment: name, data }),
    box: () => ({
      image: { kind: 'paddock-base' },
      profile: 'user',
      user: null,
      workdir: '/workspace',
      env: {},
      network: 'none',
      agentTimeoutMs: 5 * 60_000,
      verifyTimeoutMs: null,
    }),
    tools: (task) => toolsOf(task.data),
    collect: async (context) => {
      await context.box.killBackground()
      await context.box.freeze()
      const bytes = Buffer.from(JSON.stringify(stateOf(context).labels))
      return {
        items: [
          {
            path: labelsPath,
            content: {
              found: true,
              entries: [{ type: 'file', path: 'labels.json', mode: 0o444, data: bytes }],
              refused: [],
              cutShort: false,
              totalBytes: bytes.length,
            },
          },
        ],
      }
    },
    verify: async ({ task, artifacts }) => {
      const entry = artifacts.items.find(({ path }) => path === labelsPath)?.content.entries[0]
      const text = entry?.type === 'file' ? new TextDecoder().decode(entry.data) : '{}'
      const labels = z.record(z.string(), z.int()).parse(JSON.parse(text))
      const all = Object.entries(task.data.samples)
      const right = all.filter(([sample, value]) => labels[sample] === value)
      return scored(right.length === all.length ? 1 : 0, {
        verifier: { id: `${name}/${task.name}`, version, sha256: sha256(JSON.stringify([version, task.data])) },
        trust: 'host',
        components: { labelled: right.length / all.length },
        evidence: `${right.length} of ${all.length} samples bear what they measure`,
      })
    },
    scripts: {
      oracle: async (task) => ({ name: 'oracle', weight: 4, script: { steps: solved(task.data) } }),
      cheats: async ({ data: { samples } }) => [
        {
          name: 'labels without an assay',
          weight: 1,
          script: { steps: [...Object.keys(samples).map((one) => label(one, 7)), { say: 'Done.' }] },
        },
      ],
      distractors: async ({ data: { samples, lost } }) => [
        {
          name: 'does not order again what was lost',
          weight: 1,
          script: {
            steps: [
              ...Object.keys(samples).map(order),
              ...Object.entries(samples)
                .filter(([one]) => !lost.includes(one))
                .map(([one, value]) => label(one, value)),
              { say: 'Done.' },
            ],
          },
        },
      ],
    },
  })
}
