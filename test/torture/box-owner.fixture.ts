import { setTimeout as sleep } from 'node:timers/promises'
import { type Box, dockerProvider } from '../../src/sandbox/index.ts'

/** Works with boxes in every way there is, in an order of its seed, until it is killed; tells of each step that it begins. */
let state = Number(process.argv[2] ?? 1)
const random = (below: number): number => {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
  return state % below
}
const provider = dockerProvider({ warmBoxes: 2, parkWarmBoxes: true })
const image = await provider.ensureImage({ kind: 'paddock-base' })
const socket = await provider.openModelSocket()
const boxes: Box[] = []
const labels = { role: 'agent' } as const
const pick = (): Box | undefined => boxes[random(Math.max(1, boxes.length))]

const steps: readonly (() => Promise<unknown>)[] = [
  async () => boxes.push(await provider.createBox({ image, profile: 'user', labels })),
  async () =>
    boxes.push(
      await provider.createBox({
        image,
        profile: 'user',
        labels,
        modelPath: { socket },
        egress: { allow: ['x.test'] },
      }),
    ),
  async () => provider.prefetch({ image, profile: 'root', labels }),
  async () => void pick()?.exec({ command: 'trap "" TERM HUP; setsid sleep 1000 & sleep 1000', timeoutMs: 300_000 }),
  async () => pick()?.freeze(),
  async () => pick()?.snapshot(),
  async () => {
    const snapshot = await pick()?.snapshot()
    if (snapshot !== undefined) boxes.push(await provider.createBox({ image: snapshot.image, profile: 'user', labels }))
  },
  async () => provider.pauseBoxes(),
  async () => provider.openModelSocket(),
  async () => boxes.splice(random(Math.max(1, boxes.length)), 1)[0]?.destroy(),
]
for (let turn = 0; ; turn++) {
  process.send?.(turn)
  const work = steps[turn < 2 ? turn : random(steps.length)]?.()
  // Sometimes the next step begins before this one is through.
  await Promise.race([work, sleep(100 + random(400))]).catch(() => undefined)
  work?.catch(() => undefined)
  if (boxes.length > 5) await boxes.shift()?.destroy()
}
