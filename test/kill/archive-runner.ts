/**
 * An owner that moves finished sessions into their archive and kills itself behind a step of the first one.
 * `node archive-runner.ts DIRECTORY STORE STEP`, the store as JSON.
 */
import { type ObjectsStore, openStore } from '../../src/trajectory/index.ts'

const [directory = '', store = '', last = ''] = process.argv.slice(2)
const owner = await openStore(directory, {
  archive: {
    // Of a test, which has it from the options of a store.
    store: JSON.parse(store) as ObjectsStore,
    pollMs: null,
    onStep: (step) => {
      if (step === last) process.kill(process.pid, 'SIGKILL')
    },
  },
})
await owner.archiver?.round()
throw new Error(`it went on behind ${last}: ${JSON.stringify(owner.archiver?.state())}`)
