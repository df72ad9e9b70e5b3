/** One run of the loop, weights included, over a coordinator and two nodes: what a trainer gets is what one machine gives it. */
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'
import { serve } from '../cli/paddock.ts'
import { coordinator, nodeArgs, rollouts, started, stopped } from '../cli/running-nodes.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Claim, type JsonRow, Trainer } from '../rl/trainer.ts'

const steps = 4
const members = 6
const plugins = fileURLToPath(new URL('../../examples/plugins', import.meta.url))
const tasks = { small: [17, 25], three: [1, 2, 3] } as const

const directory = tempDir()
let engine: EngineProcess
afterEach(async () => {
  await stopped()
  await engine.kill()
})

/**
 * The loop of `examples/plugins/harness.ts`, each rollout with a seed of its own: who begins as the nth of its task has the
 * nth seed, at whichever node. So which slot has which seed may differ, and the rows of a group as a set may not.
 */
const harness = `import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { runToolCall } from ${JSON.stringify(import.meta.resolve('paddock-rl/harness'))}
function seedOf(task) {
  for (let n = 0; ; n += 1) {
    try {
      mkdirSync(join(process.env.LEARN_SEEDS, task + '-' + n))
      return n
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
  }
}
export default {
  name: 'seeded', apiVersion: 1, version: '1', dialect: 'chat', place: 'host', box: 'tools',
  run: async ({ task, attempt, box, tools, prompt, baseUrl, apiKey, model, signal }) => {
    const seed = seedOf(task.name)
    const messages = [{ role: 'user', content: prompt }]
    const offered = tools.map(({ name, description, inputSchema: parameters }) =>
      ({ type: 'function', function: { name, description, parameters } }))
    for (;;) {
      const answer = await fetch(baseUrl + '/chat/completions', {
        method: 'POST',
        headers: { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages, tools: offered, seed }),
        signal,
      })
      if (!answer.ok) throw new Error(await answer.text())
      const { choices: [{ message }] } = await answer.json()
      messages.push(message)
      if (!message.tool_calls?.length) return { end: 'completed', detail: 'seed ' + seed, answer: message.content }
      for (const { id, function: { name, arguments: argumentsText } } of message.tool_calls) {
        const { text } = await runToolCall(tools, { name, argumentsText }, { task, attempt, box, signal })
        messages.push({ role: 'tool', tool_call_id: id, content: text })
      }
    }
  },
}
`

interface Learned {
  /** Digests of the rows of each group, sorted. */
  readonly rows: Readonly<Record<string, readonly string[]>>
  readonly rewards: Readonly<Record<string, readonly (number | null)[]>>
  /** Versions of the weights that sampled each group. */
  readonly sampledBy: Readonly<Record<string, readonly number[]>>
  readonly logits: Readonly<Record<string, number>>
}

/** What a trainer trains on, without what is of one time and place: ids. */
function digestOf(row: JsonRow): string {
  const { usable, reward, weight, rows_of_rollout, fork_reason, trained_tokens_of, n_tokens, prompt_len } = row
  const { versions, turn_spans, observation_spans, mask_reasons, arrays } = row
  const facts = { usable, reward, weight, rows_of_rollout, fork_reason, trained_tokens_of, n_tokens, prompt_len }
  const trained = { ...facts, versions, turn_spans, observation_spans, mask_reasons, arrays }
  return createHash('sha256').update(JSON.stringify(trained)).digest('hex')
}

const instruction = async (name: string): Promise<string> =>
  (JSON.parse(await readFile(join(plugins, 'tasks', `${name}.json`), 'utf8')) as { instruction: string }).instruction

/** A trainer whose only parameters are how sure the policy is of each task: what it learns comes from the rewards of the rows. */
async function learn(trainer: Trainer): Promise<Learned> {
  const logits: Record<string, number> = {}
  const rows: Record<string, readonly string[]> = {}
  const rewards: Record<string, readonly (number | null)[]> = {}
  const sampledBy: Record<string, readonly number[]> = {}
  for (const [name, numbers] of Object.entries(tasks)) {
    logits[name] = 0
    const answer = (sum: number) => [{ tool: 'submit', args: { answer: String(sum) } }, { say: 'Done.' }]
    const sum = numbers.reduce((total, number) => total + number, 0)
    const candidates = [
      { name: 'right', weight: 0, steps: answer(sum) },
      { name: 'wrong', weight: 0.5, steps: answer(0) },
    ]
    await engine.control('/scripts', { instruction: await instruction(name), candidates })
  }
  const run = { run_id: 'learns', purpose: 'train', environment: 'sums', tasks: join(plugins, 'tasks') }
  await trainer.ask('POST', '/runs', { ...run, harness: 'seeded', groups_per_step: 2 })
  await trainer.attach('learns')
  const policy = (version: number, phase: string) =>
    trainer.ask('POST', '/runs/learns/policy', {
      incarnation: 1,
      version,
      phase,
      ...(phase === 'live' ? { step: version > 1 ? version - 1 : null } : {}),
      label: `step-${version}`,
    })
  const push = async (version: number): Promise<void> => {
    await policy(version, 'pausing')
    for (const name of Object.keys(tasks)) {
      const weights = { right: logits[name], wrong: 0.5 }
      const update = { instruction: await instruction(name), weights, version: `step-${version}` }
      await engine.control('/weights', update)
    }
    await policy(version, 'live')
  }
  await push(0)
  for (let step = 0; step < steps; step += 1) {
    const groups = Object.keys(tasks).map((task) => ({ group_id: `${task}-${step}`, task, n: members }))
    await trainer.ask('POST', '/runs/learns/groups', { groups })
    const claims: Claim[] = []
    while (claims.length < groups.length) claims.push(...(await trainer.claim('learns', { wait_s: 60 })))
    for (const { group_id: group, claim_id } of claims) {
      const round = await trainer.rows(group, claim_id)
      rows[group] = round.rows.map(digestOf).toSorted()
      rewards[group] = round.members.map(({ reward }) => reward).toSorted((a, b) => Number(a) - Number(b))
      const versions = round.rows.flatMap((row) => row.versions.map(([, , low = -1]) => low))
      sampledBy[group] = [...new Set(versions)].filter((version) => version !== -1)
      // As far as the mean of its members is from right.
      const mean = (rewards[group] ?? []).reduce<number>((total, reward) => total + Number(reward), 0) / members
      logits[round.task.name] = (logits[round.task.name] ?? 0) + 3 * (1 - mean)
      await trainer.dispose(
        'learns',
        round.rows.map(({ row_id: row, reward }) => ({ row, outcome: 'used', step, reward_used: reward })),
      )
    }
    await push(step + 1)
  }
  await trainer.ask('POST', '/runs/learns/close', {})
  return { rows, rewards, sampledBy, logits }
}

it('over two nodes a run of the loop comes to the rows, rewards and weights of one machine', async () => {
  const plugin = join(directory, 'seeded.mjs')
  await writeFile(plugin, harness)
  const list = (...paths: readonly string[]) => JSON.stringify(paths)
  const config = `export default { environments: ${list(join(plugins, 'environment.ts'))}, harnesses: ${list(plugin)} }\n`
  const trainerOf = async (url: string, data: string): Promise<Trainer> =>
    new Trainer({ ready: { control: url } as never }, (await readFile(join(data, 'control-token'), 'utf8')).trim())
  const seeds = async (name: string): Promise<Record<string, string>> => ({
    LEARN_SEEDS: await mkdtemp(join(directory, `${name}-seeds-`)),
  })

  engine = await startEngine()
  const here = await coordinator(directory, 'together', config, '--engine', engine.url)
  const file = ['--config', join(directory, 'together.config.mjs')]
  const env = await seeds('together')
  for (const name of ['left', 'right']) started([...(await nodeArgs(here, name, 3)), ...file], env)
  const together = await learn(await trainerOf(here.url, here.data))
  const ran = await rollouts(here.data)
  expect(ran).toHaveLength(steps * 2 * members)
  expect(new Set(ran.map(({ labels }) => labels['node']))).toEqual(new Set(['left', 'right']))
  await stopped()
  await engine.kill()

  engine = await startEngine()
  const data = join(directory, 'alone')
  const serving = await serve(data, [...file, '--engine', engine.url], await seeds('alone'))
  const alone = await learn(await trainerOf(serving.ready.control, data))
  await serving.stop()

  expect(Object.values(together.rows).map((rows) => rows.length)).toEqual(
    Array.from({ length: steps * 2 }, () => members),
  )
  // It is a run in which something is learned, by each step's own weights.
  const all = Object.values(together.rewards).flat()
  expect(new Set(all)).toEqual(new Set([0, 1]))
  expect(together.sampledBy).toMatchObject({ 'small-0': [0], [`three-${steps - 1}`]: [steps - 1] })
  expect(together).toEqual(alone)
})
