/** Nodes as jobs of Slurm, by the commands of the guide: a machine is lost and comes back, a job is cancelled and another requeued. */
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { launcher, paddock } from '../cli/paddock.ts'
import { coordinator, type Line, rollouts, stopped } from '../cli/running-nodes.ts'
import { judgeStorm, stormHarness, stormRun } from '../torture/storm.ts'
import { hasSlurm, patience, saidIn, SlurmCluster } from './slurm-cluster.ts'

const root = join(import.meta.dirname, '../..')
const n = 16
let directory: string
beforeEach(async () => {
  // Short, for a socket's path has 107 bytes.
  directory = await mkdtemp('/tmp/paddock-slurm-')
})
afterEach(async () => {
  await stopped()
  await rm(directory, { recursive: true, force: true })
})

const guide = await readFile(join(root, 'docs/guides/nodes-on-slurm.md'), 'utf8')
/** The command of the guide that begins so, as it is here. */
function asInGuide(begin: string, here: Readonly<Record<string, string>>): string {
  const line = guide.split('\n').find((text) => text.startsWith(begin))
  if (line === undefined) throw new Error(`the guide has no ${begin}`)
  return Object.entries(here).reduce((text, [from, to]) => {
    expect(text).toContain(from)
    return text.replace(from, to)
  }, line)
}

/** False where there is no such process. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

async function parentOf(pid: number): Promise<number> {
  return Number(/^PPid:\s*(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])
}

it.runIf(hasSlurm())(
  `${n} rollouts, two nodes: one machine is lost and its job requeued, the other job is cancelled; each settles once`,
  { timeout: 600_000 },
  async () => {
    await using slurm = await SlurmCluster.start(join(directory, 's'))
    const plugin = join(directory, 'one-call.mjs')
    await writeFile(plugin, stormHarness)
    const config = `export default { nodes: { leaseMs: 3000 }, harnesses: { 'one-call': ${JSON.stringify(plugin)} } }\n`
    const here = await coordinator(directory, 'here', config)
    const file = ['--config', join(directory, 'here.config.mjs')]

    const bin = join(directory, 'bin')
    await mkdir(bin)
    await symlink(launcher, join(bin, 'paddock'))
    const hold = join(directory, 'hold')
    await writeFile(hold, '')
    const disk = join(directory, 'disk')
    const env = { NODE_DISK: disk, STORM_HOLD: hold, ENGINE_URL: '', PADDOCK_DATA: here.data }
    await slurm.shell(asInGuide('./paddock token create', { './paddock': 'paddock' }), bin, env)
    const asked = {
      'deploy/slurm': join(root, 'deploy/slurm'),
      'https://coordinator.example:8791': here.url,
      '--places 8': ['--places 2 --json', ...file].join(' '),
    }
    const submit = asInGuide('sbatch', asked)
    const [id = ''] = /\d+/.exec(await slurm.shell(submit, bin, env)) ?? []
    await expect.poll(() => slurm.queue(), patience).toEqual([`${id}_1 RUNNING n1`, `${id}_2 RUNNING n2`])
    const log = (index: number): string => join(directory, 's', `paddock-node-${id}-${index}.log`)
    const said = async (index: number, type: string): Promise<readonly Line[]> =>
      (await saidIn(log(index))).filter((line) => line['type'] === type)

    const run = paddock([...stormRun(['log-forensics'], n), ...file, '--data', here.data])
    for (const index of [1, 2]) await expect.poll(() => said(index, 'claimed'), patience).toHaveLength(2)
    const lost = (await said(1, 'claimed')).map(({ job }) => job)

    // A machine that stands still and is back later, when its work is another's.
    const [first] = await said(1, 'ready')
    const orphan = Number(first?.['pid'])
    const step = await parentOf(orphan)
    signal(orphan, 'SIGSTOP')
    try {
      await slurm.lose('n1')
      expect(await slurm.queue()).toContain(`${id}_1 PENDING `)

      await slurm.shell(asInGuide('scancel 4711_2', { '4711': id }), bin, env)
      await expect.poll(() => said(2, 'given_back'), patience).toHaveLength(2)
      await expect.poll(() => slurm.queue(), patience).toEqual([`${id}_1 PENDING `])
      await slurm.ask('scontrol', 'update', `jobid=${id}_1`, 'starttime=now')
      await expect.poll(() => said(1, 'ready'), patience).toHaveLength(2)
      expect(await slurm.queue()).toEqual([`${id}_1 RUNNING n2`])

      await rm(hold)
      const doneOf = async () => (await said(1, 'handed_in')).map(({ job }) => job)
      await expect.poll(doneOf, patience).toEqual(expect.arrayContaining(lost))
      signal(orphan, 'SIGCONT')
      const late = async () => {
        const lines = await saidIn(log(1))
        return lines.filter(({ type = '' }) => ['lost', 'refused'].includes(type)).map(({ job }) => job)
      }
      await expect.poll(late, patience).toEqual(expect.arrayContaining(lost))
      const ended = await run
      expect([ended.code, ended.err]).toEqual([0, ''])

      const ran = await rollouts(here.data)
      expect(ran.filter(({ attempt }) => attempt > 0).length).toBeGreaterThanOrEqual(lost.length)
      await slurm.shell(asInGuide('scancel --name', {}), bin, env)
      await expect.poll(() => slurm.queue(), patience).toEqual([])
      // The controller has no job on the lost machine any more: its node has to be ended there.
      signal(orphan, 'SIGTERM')
      await expect.poll(() => [orphan, step].filter((pid) => signal(pid, 0)), patience).toEqual([])
      const folders = slurm.nodes.map((name) => join(disk, name))
      await judgeStorm({ data: here.data }, { groups: 1, n, nodes: folders })
    } finally {
      for (const pid of [orphan, step]) signal(pid, 'SIGKILL')
    }
  },
)

it.runIf(hasSlurm())('a job of several nodes is refused, and told how to have them', async () => {
  await using slurm = await SlurmCluster.start(join(directory, 's'))
  const script = join(root, 'deploy/slurm/paddock-nodes.sbatch')
  const asked = `sbatch --wait --nodes=2 --array=1 --output=wide.log ${script} --join http://127.0.0.1:1`
  await expect(slurm.shell(asked, directory, {})).rejects.toMatchObject({ code: 2 })
  expect(await readFile(join(directory, 's/wide.log'), 'utf8')).toContain('Fix: sbatch --array=1-2, without --nodes.')
})
