import { dockerProvider } from '../index.ts'

/**
 * A process that owns a box with a relay, a frozen box and a slot, says so, and waits to be killed. With `no-reaper` nobody
 * sweeps for it; with `slot-only` it owns a slot and nothing else.
 */
const provider = dockerProvider({ reaper: process.argv[2] !== 'no-reaper' })
const slot = await provider.openSlot()
if (process.argv[2] === 'slot-only') {
  process.send?.({ slot: slot.socketPath })
  await new Promise(() => setInterval(() => undefined, 1000))
}
const image = await provider.ensureImage({ kind: 'paddock-base' })
const box = await provider.createBox({ image, profile: 'user', labels: { role: 'agent' }, modelPath: { slot } })
void box.exec({ command: 'trap "" TERM HUP; setsid sleep 1000 & sleep 1000' })
const frozen = await provider.createBox({ image, profile: 'root', labels: { role: 'agent' } })
await frozen.freeze()
process.send?.({ slot: slot.socketPath })
