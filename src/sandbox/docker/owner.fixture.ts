import { dockerProvider } from '../index.ts'

/**
 * A process that owns a box with a relay, a frozen box and a model socket, says so, and waits to be killed. With `no-reaper` nobody
 * sweeps for it; with `socket-only` it owns a model socket and nothing else.
 */
const provider = dockerProvider({ reaper: process.argv[2] !== 'no-reaper' })
const socket = await provider.openModelSocket()
if (process.argv[2] === 'socket-only') {
  process.send?.({ socket: socket.socketPath })
  await new Promise(() => setInterval(() => undefined, 1000))
}
const image = await provider.ensureImage({ kind: 'paddock-base' })
const box = await provider.createBox({ image, profile: 'user', labels: { role: 'agent' }, modelPath: { socket } })
void box.exec({ command: 'trap "" TERM HUP; setsid sleep 1000 & sleep 1000' })
const frozen = await provider.createBox({ image, profile: 'root', labels: { role: 'agent' } })
await frozen.freeze()
process.send?.({ socket: socket.socketPath })
