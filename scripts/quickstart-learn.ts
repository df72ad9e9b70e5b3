/** `./quickstart --learn`: a small model learns behind a real engine, while one looks on. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { doors, learn as learnOf, openClassroom } from './learn.ts'
import { picture } from './learn-picture.ts'

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
  await using room = await openClassroom(up.stdout.trim(), doors, 'inherit')
  say(
    `3 of 3   ${steps} steps of 4 groups of 8 rollouts, each of two calls; first and last, 128 clues that never train`,
  )
  const name = `doors-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}`
  const order = { name, data, seed: 1, steps, lag: 1, control: false }
  const learned = await learnOf(room, order, (line) => {
    const [, step, reward] = /^step (\d+): .*reward ([\d.e-]+)/.exec(line) ?? []
    if (step === undefined) return
    say(
      `         step ${step.padStart(2)}  reward ${Number(reward).toFixed(2)}  ${'█'.repeat(Math.round(Number(reward) * 40))}`,
    )
  })
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, 'learned.json'), JSON.stringify(learned))
  writeFileSync(join(out, 'reward.svg'), picture('doors', learned))
  say()
  say(
    `Held-out clues: ${learned.before.toFixed(2)} before, ${learned.after.toFixed(2)} after (${learned.tasks} clues, McNemar p ${learned.p.toExponential(0)}).`,
  )
  say(`The curve is in ${join(out, 'reward.svg')}. Look at what was said, call by call, version by version:`)
  say(`  ./paddock --data ${data} view`)
  return 0
}
