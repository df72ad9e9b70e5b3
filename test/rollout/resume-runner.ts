/**
 * A Paddock of its own, to be killed: `node resume-runner.ts <data directory> <engine url> <run id> <file>`. Its verifiers
 * wait until the file is there.
 */
import { terminal } from '../../src/envs/index.ts'
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import { referenceAgent, runRollouts } from '../../src/rollout/index.ts'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { model, terminalTask, waitingFor } from './world.ts'

const [directory = '', engineUrl = '', runId = '', file = ''] = process.argv.slice(2)
const store = await openStore(directory)
await runRollouts({
  store,
  proxy: createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engineUrl }) }),
  sandbox: dockerProvider(),
  environment: waitingFor(file, terminal),
  tasks: [await terminalTask('log-forensics'), await terminalTask('git-archaeology')],
  harness: referenceAgent(),
  model,
  n: 2,
  limits: { agent: 2, boot: 1, verify: 1 },
  runId,
})
