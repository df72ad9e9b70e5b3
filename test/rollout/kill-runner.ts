/** A Paddock of its own, to be killed: `node kill-runner.ts <data directory> <engine url> <run id>`. */
import { terminal } from '../../src/envs/index.ts'
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import { qwenCode, runRollouts } from '../../src/rollout/index.ts'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { model, terminalTask } from './world.ts'

const [directory = '', engineUrl = '', runId = ''] = process.argv.slice(2)
const store = await openStore(directory)
await runRollouts({
  store,
  proxy: createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engineUrl }) }),
  // Nobody sweeps behind it, so that the test sees what is left.
  sandbox: dockerProvider({ reaper: false }),
  environment: terminal,
  tasks: [await terminalTask('log-forensics')],
  harness: qwenCode(),
  model,
  n: 2,
  runId,
  onProgress: (progress) => process.stdout.write(`${JSON.stringify(progress)}\n`),
})
