import { withLock } from './lock.ts'

/** Takes the named lock, says so, and keeps it until it is killed. */
await withLock(process.argv[2] ?? '', () => {
  process.send?.('locked')
  return new Promise(() => setInterval(() => undefined, 1000))
})
