/** A node of several processes behind one listener: what becomes of the rollouts of one that is killed, and that all hear what nodes hear. */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { paddock } from '../cli/paddock.ts'
import { coordinator, type Line, nodeArgs, rollouts, type Running, started, stopped } from '../cli/running-nodes.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'

const task = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
let directory: string
let engine: EngineProcess
beforeAll(async () => {
  directory = tempDir()
  engine = await startEngine('--wire', 'openai')
})
afterEach(stopped)
afterAll(async () => {
  await engine.kill()
})

/** A call, the gate, another call: without a box, on a connection that all agents of a process share. `<gate>.<pid>` is for one of a process. */
async function harness(
  name: string,
): Promise<{ readonly config: string; readonly gate: string; readonly seen: string }> {
  const [plugin, gate, seen] = ['mjs', 'gate', 'seen'].map((end) => join(directory, `${name}.${end}`)) as [
    string,
    string,
    string,
  ]
  await writeFile(
    plugin,
    `import { appendFileSync, existsSync, rmSync } from 'node:fs'
     import { setTimeout } from 'node:timers/promises'
     export default {
       name: 'gated', apiVersion: 1, version: '1', dialect: 'chat', place: 'host', box: 'none', replays: true,
       run: async ({ baseUrl, apiKey, model, prompt, signal }) => {
         const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' }
         const body = JSON.stringify({ model, messages: [{ role: 'user', content: prompt }], max_tokens: 16, stream: true })
         const ask = async () => {
           const answer = await fetch(baseUrl + '/chat/completions', { method: 'POST', headers, body, signal })
           return [answer.ok, await answer.text()]
         }
         const [first] = await ask()
         appendFileSync(${JSON.stringify(seen)}, new URL(baseUrl).origin + '\\n')
         const gate = ${JSON.stringify(gate)}
         const one = gate + '.' + process.pid
         while (!existsSync(gate) && !existsSync(one)) await setTimeout(20, undefined, { signal })
         rmSync(one, { force: true })
         const [second, text] = await ask()
         return { end: first && second && text.includes('[DONE]') ? 'completed' : 'harness_crash', detail: text, answer: null }
       },
     }\n`,
  )
  return { config: `export default { harnesses: { gated: ${JSON.stringify(plugin)} } }\n`, gate, seen }
}

const of = (line: Line, shard: number): boolean => Number(line['shard']) === shard
const said = (node: Running, type: string, shard: number): readonly Line[] =>
  node.lines.filter((line) => line['type'] === type && of(line, shard))
/** Resolves when lines of a type of a shard are as many. */
async function many(node: Running, type: string, shard: number, count: number): Promise<readonly Line[]> {
  await node.line(() => said(node, type, shard).length >= count)
  return said(node, type, shard)
}
const held = (node: Running, shard: number): readonly (string | undefined)[] => {
  const over = new Set(['handed_in', 'given_back'].flatMap((type) => said(node, type, shard).map(({ job }) => job)))
  return said(node, 'claimed', shard).flatMap(({ job }) => (over.has(job) ? [] : [job]))
}
/** Throws where it said none: a signal to 0 would be for this process too. */
async function pidOf(node: Running, shard: number): Promise<number> {
  const [ready] = await many(node, 'ready', shard, 1)
  const pid = Number(ready?.['pid'])
  if (pid > 0) return pid
  throw new Error(`shard ${shard} said no pid`)
}
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
const lines = async (file: string): Promise<readonly string[]> =>
  existsSync(file) ? (await readFile(file, 'utf8')).trim().split('\n') : []

it('a shard that is killed under load loses what it had under way and nothing else: that is done once more, and all of the node hear of weights', async () => {
  const { config, gate, seen } = await harness('killed')
  const here = await coordinator(directory, 'here', config, '--engine', engine.url)
  const file = join(directory, 'here.config.mjs')
  const args = await nodeArgs(here, 'wide', 4)
  const node = started([...args, '--shards', '2', '--config', file])
  const { inference } = await node.said('shards')

  const [one, two] = [await many(node, 'ready', 1, 1), await many(node, 'ready', 2, 1)]
  expect([one[0]?.['name'], two[0]?.['name']]).toEqual(['wide.1', 'wide.2'])

  const asked = ['run', task, '--n', '24', '--min-usable', '0', '--harness', 'gated', '--config', file, '--json']
  const run = paddock([...asked, '--data', here.data])
  const second = await pidOf(node, 2)
  for (const ended of [1, 2]) {
    await many(node, 'claimed', 2, ended)
    await writeFile(`${gate}.${second}`, '')
    await many(node, 'handed_in', 2, ended)
  }
  const endedThere = said(node, 'handed_in', 2).map(({ job }) => job)

  // Both are full, and all of them wait behind their first call.
  while (held(node, 1).length < 2 || held(node, 2).length < 2) await node.line(() => true).then(() => setTimeout(20))

  const begun = said(node, 'claimed', 1).length + said(node, 'claimed', 2).length
  while ((await lines(seen)).length < begun) await setTimeout(20)
  expect(new Set(await lines(seen))).toEqual(new Set([inference]))

  const [there, lost] = [held(node, 1), held(node, 2)]

  const told = await paddock(['engine', 'weights', 'two', '--json', '--data', here.data])
  expect(JSON.parse(told.out).nodes).toMatchObject({ answered: 2, passed: [] })

  process.kill(second, 'SIGKILL')
  expect(await node.said('shard')).toMatchObject({ shard: 2, detail: 'SIGKILL' })
  await many(node, 'ready', 2, 2)
  for (const job of lost) await node.line((line) => line['type'] === 'given_back' && line['job'] === job)

  await writeFile(gate, '')
  const ended = await run
  expect([ended.code, ended.err]).toEqual([0, ''])

  const ran = await rollouts(here.data)
  expect(ran.map(({ slot }) => slot).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 24 }, (_, slot) => slot))
  expect(new Set(ran.map(({ end }) => end))).toEqual(new Set(['completed']))
  expect(new Set(ran.map(({ labels }) => labels['node']))).toEqual(new Set(['wide.1', 'wide.2']))
  // Only what was under way there was tried again.
  expect(ran.filter(({ attempt }) => attempt > 0)).toHaveLength(lost.length)
  const handed = [...said(node, 'handed_in', 1), ...said(node, 'handed_in', 2)].map(({ job }) => job)
  expect(handed).toHaveLength(24)
  expect(new Set(handed).size).toBe(24)
  expect(said(node, 'handed_in', 1).map(({ job }) => job)).toEqual(expect.arrayContaining([...there]))
  expect(said(node, 'refused', 1).length + said(node, 'refused', 2).length).toBe(0)
  expect(endedThere.every((job) => handed.includes(job))).toBe(true)

  expect(await node.end()).toBe(0)
  await stopped()
  for (const data of [here.data, ...[1, 2].map((shard) => join(directory, 'wide', 'shards', String(shard)))]) {
    expect((await paddock(['fsck', '--data', data])).out).toContain('no problems')
  }
})

it('processes go with their parent and give back what they have; fewer of them are refused until that is done', async () => {
  const { config, seen } = await harness('parent')
  const here = await coordinator(directory, 'parent', config, '--engine', engine.url)
  const file = join(directory, 'parent.config.mjs')
  const args = [...(await nodeArgs(here, 'orphans', 2)), '--config', file]
  const node = started([...args, '--shards', '2'])
  await node.said('shards')
  const pids = [await pidOf(node, 1), await pidOf(node, 2)] as const
  const run = paddock([
    'run',
    task,
    '--n',
    '2',
    '--min-usable',
    '0',
    '--harness',
    'gated',
    '--config',
    file,
    '--data',
    here.data,
  ])
  await many(node, 'claimed', 1, 1)
  await many(node, 'claimed', 2, 1)
  while ((await lines(seen)).length < 2) await setTimeout(20)
  // Killed themselves first, so that their jobs stay on the disk.
  process.kill(pids[1], 'SIGKILL')
  await node.said('shard')
  node.child.kill('SIGKILL')
  while (pids.some(isAlive)) await setTimeout(20)
  const fewer = await paddock(args)
  expect([fewer.code, fewer.err]).toEqual([2, expect.stringMatching(/NODE_UNFIT.*1 job.*shards\/2.*--shards 2/s)])

  const again = started([...args, '--shards', '2'])
  expect((await many(again, 'given_back', 2, 1)).length).toBe(1)
  await writeFile(join(directory, 'parent.gate'), '')
  expect((await run).code).toBe(0)
  expect((await rollouts(here.data)).map(({ end }) => end)).toEqual(['completed', 'completed'])
  expect(await again.end()).toBe(0)
  const plain = started(args)
  await plain.said('ready')
})

it('what is wrong with all of them is said once', async () => {
  const here = await coordinator(directory, 'wrong')
  const args = await nodeArgs(here, 'few', 2)
  const few = await paddock([...args, '--shards', '3'])
  expect([few.code, few.err]).toEqual([2, expect.stringMatching(/^USAGE: --shards 3 .* 2\. Fix: /)])
  const env = { PADDOCK_CONTROL_TOKEN: 'x'.repeat(43) }
  const own = ['node', '--join', here.url, '--name', 'x', '--data', join(directory, 'mistaken')]
  for (const [token, said] of [
    [env.PADDOCK_CONTROL_TOKEN, /CONTROL_TOKEN: /g],
    ['', /USAGE: a node needs a token/g],
  ] as const) {
    const mistaken = await paddock([...own, '--shards', '2'], { PADDOCK_CONTROL_TOKEN: token })
    expect(mistaken.code).toBe(2)
    expect(mistaken.err.match(said)).toHaveLength(1)
  }
  const alone = await paddock([...own, '--shard', '1/2'], env)
  expect([alone.code, alone.err]).toEqual([2, expect.stringContaining('USAGE')])
})
