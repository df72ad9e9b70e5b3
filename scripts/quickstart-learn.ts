/** `./quickstart --learn`: a small model learns behind a real engine, while one looks on. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Learned, learnDoors, openClassroom } from './learn.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const steps = 50
/** What vLLM, the trainer and Paddock take together. */
const neededBytes = 4 * 2 ** 30

export interface LearnOptions {
  readonly data: string
  readonly out: string
  readonly say: (text?: string) => void
}

/** Its exit code: 3 where what it needs cannot be had here. */
export async function learn({ data, out, say }: LearnOptions): Promise<number> {
  say('Paddock quickstart: a model learns')
  say(
    `Writes   ${data}/ (the store) and ${out}/ (a picture and its numbers); packages and models to ~/.cache/paddock/real,`,
  )
  say('         or where PADDOCK_REAL_CACHE says: 3 GB of downloads and 8 GB of disk, once.')
  say('Takes    about 15 minutes on two cores, most of it the first time.')
  say()
  if (freemem() < neededBytes) {
    const free = (freemem() / 2 ** 30).toFixed(1)
    console.error(
      `quickstart: ${free} GiB of memory are free, and 4 are needed. Fix: end other programs, then run this again.`,
    )
    return 3
  }
  say('1 of 3   packages (vLLM, torch) and models')
  const up = spawnSync('sh', ['scripts/real-up'], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  if (up.status !== 0) return up.status ?? 1
  say(
    '2 of 3   the model as it was before: a Llama of two million parameters that opens doors at random; vLLM serves it',
  )
  await using room = await openClassroom(up.stdout.trim(), 'inherit')
  say(
    `3 of 3   ${steps} steps of 4 groups of 8 rollouts, each of two calls; first and last, 128 clues that never train`,
  )
  const name = `doors-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}`
  const order = { name, data, seed: 1, steps, lag: 1, control: false }
  const learned = await learnDoors(room, order, (line) => {
    const [, step, reward] = /^step (\d+): .*reward ([\d.e-]+)/.exec(line) ?? []
    if (step === undefined) return
    say(
      `         step ${step.padStart(2)}  reward ${Number(reward).toFixed(2)}  ${'█'.repeat(Math.round(Number(reward) * 40))}`,
    )
  })
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, 'learned.json'), JSON.stringify(learned))
  writeFileSync(join(out, 'reward.svg'), picture(learned))
  say()
  say(
    `Held-out clues: ${learned.before.toFixed(2)} before, ${learned.after.toFixed(2)} after (${learned.tasks} clues, McNemar p ${learned.p.toExponential(0)}).`,
  )
  say(`The curve is in ${join(out, 'reward.svg')}. Look at what was said, call by call, version by version:`)
  say(`  ./paddock --data ${data} view`)
  return 0
}

/** Reward by step, and the two examinations as lines across. */
function picture({ steps: all, before, after }: Learned): string {
  const [width, height, edge] = [640, 320, 48]
  const x = (step: number): number => edge + (step / Math.max(1, all.length - 1)) * (width - 2 * edge)
  const y = (reward: number): number => height - edge - reward * (height - 2 * edge)
  const points = all.map(({ step, values }) => `${x(step).toFixed(1)},${y(values['reward'] ?? 0).toFixed(1)}`).join(' ')
  const across = (reward: number, text: string): string => `
  <line x1="${edge}" x2="${width - edge}" y1="${y(reward)}" y2="${y(reward)}" stroke="#999" stroke-dasharray="4 4"/>
  <text x="${width - edge}" y="${y(reward) - 6}" text-anchor="end">${text} ${reward.toFixed(2)}</text>`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13">
  <rect width="${width}" height="${height}" fill="#fff"/>
  <text x="${edge}" y="24" font-size="16">doors: mean reward of each step's rollouts</text>
  <text x="${edge - 8}" y="${y(0) + 4}" text-anchor="end">0</text><text x="${edge - 8}" y="${y(1) + 4}" text-anchor="end">1</text>
  <text x="${width / 2}" y="${height - 16}" text-anchor="middle">step</text>${across(before, 'held out, before')}${across(after, 'held out, after')}
  <polyline points="${points}" fill="none" stroke="#1a66cc" stroke-width="2"/>
</svg>
`
}
