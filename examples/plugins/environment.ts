/** An environment in one file: sums, handed in with a tool. Listed under `environments`, or named with --env. */
import { defineEnvironment, defineTool, environmentKit, loadJsonTasks, toolOutcome, z } from 'paddock-rl/environment'
import { scored } from 'paddock-rl/reward'
import { closeTo } from './reward.ts'

const name = 'sums'
const version = '1'
const answerPath = '/workspace/answer.txt'
const data = z.strictObject({ numbers: z.array(z.int()).min(2) })
const sum = ({ numbers }: z.infer<typeof data>): number => numbers.reduce((total, number) => total + number, 0)
const handIn = (answer: number) => ({ steps: [{ tool: 'submit', args: { answer: String(answer) } }, { say: 'Done.' }] })

const submit = defineTool({
  name: 'submit',
  description: 'Hands the answer in: one number. The last one counts.',
  input: z.object({ answer: z.string() }),
  run: async ({ box, signal }, { answer }) =>
    toolOutcome(await box.exec({ command: ['tee', answerPath], stdin: answer }, { signal })),
})

export default defineEnvironment({
  name,
  apiVersion: 1,
  verifierVersion: version,
  task: data,
  load: (path) => loadJsonTasks(path, { environment: name, data }),
  box: () => ({
    image: { kind: 'paddock-base' },
    profile: 'user',
    user: null,
    workdir: '/workspace',
    env: {},
    network: 'none',
    agentTimeoutMs: 60_000,
    verifyTimeoutMs: null,
  }),
  tools: () => [submit],
  collect: async ({ box }) => ({ items: [{ path: answerPath, content: await box.getFiles(answerPath) }] }),
  verify: async ({ task, artifacts }) => {
    const right = await closeTo(sum(task.data))(environmentKit.artifactText(artifacts, answerPath) ?? '')
    const verifier = { id: name, version, sha256: environmentKit.sha256(`${name} ${version}`) }
    return scored(right.value, { verifier, trust: 'host', evidence: right.why })
  },
  scripts: {
    oracle: async (task) => ({ name: 'oracle', weight: 1, script: handIn(sum(task.data)) }),
    cheats: async () => [{ name: 'always 0', weight: 1, script: handIn(0) }],
    distractors: async (task) => [{ name: 'nearly', weight: 1, script: handIn(sum(task.data) + 1) }],
  },
})
