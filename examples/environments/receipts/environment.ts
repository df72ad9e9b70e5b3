/**
 * A whole environment: tasks in JSON files, a box, two tools, a verifier, and the scripts that prove it. It asks what was
 * spent at one of several shops. docs/guides/your-own-environment.md explains it part by part.
 */
import type { EnvironmentKit } from '../../../src/envs/index.ts'

const name = 'receipts'
// Change it with `verify`: it is part of every verdict, and `paddock rescore` goes by it.
const version = '1'

const receiptsFile = 'receipts.csv'
const answerPath = '/workspace/answer.txt'

export default ({
  z,
  defineEnvironment,
  defineTool,
  toolOutcome,
  loadJsonTasks,
  dice,
  artifactText,
  scored,
  rules,
  sha256,
}: EnvironmentKit) => {
  // What a task is made of. Nothing of it reaches the agent by itself.
  const data = z.strictObject({
    receipts: z.array(z.strictObject({ day: z.iso.date(), shop: z.string().regex(/^[\w ]+$/), cents: z.int() })).min(1),
    /** The shop that is asked for. */
    shop: z.string(),
  })
  type Data = ReturnType<typeof data.parse>

  const gold = ({ receipts, shop }: Data): number =>
    receipts.filter((receipt) => receipt.shop === shop).reduce((sum, { cents }) => sum + cents, 0) / 100

  const lookUp = defineTool({
    name: 'look_up',
    description: 'Lists the receipts of one shop: day, shop, price in euros.',
    input: z.object({ shop: z.string().min(1).describe('Name of the shop, as it stands on the receipts.') }),
    // It runs in the box, where nothing but the task's own files is.
    run: async ({ box, signal }, { shop }) =>
      toolOutcome(await box.exec({ command: ['grep', '-F', '--', `,${shop},`, receiptsFile] }, { signal })),
  })

  const submit = defineTool({
    name: 'submit',
    description: 'Hands in the answer: one number, in euros. The last one counts.',
    input: z.object({ answer: z.string() }),
    run: async ({ box, signal }, { answer }) =>
      toolOutcome(await box.exec({ command: ['tee', answerPath], stdin: answer }, { signal })),
  })

  return defineEnvironment({
    name,
    apiVersion: 1,
    verifierVersion: version,
    task: data,
    load: (path, options) => loadJsonTasks(path, { ...options, environment: name, data }),
    // `paddock run <name>:0..99:1..3 --env …`: tasks without end, the same for the same seed.
    generators: [
      {
        name,
        levels: 3,
        generate: ({ seed, level }) => {
          const chance = dice(seed * 3 + level)
          const shops = chance
            .shuffled(['Baker Lane', 'Corner Books', 'Dock Cafe', 'Elm Tools', 'Fish Market'])
            .slice(0, level + 1)
          const receipts = Array.from({ length: level * 12 }, (_, i) => ({
            day: `2026-03-${String(1 + (i % 28)).padStart(2, '0')}`,
            shop: shops[i % shops.length] ?? '',
            cents: chance.between(100, 9000),
          }))
          const shop = chance.pick(shops)
          return { instruction: `How much was spent at the shop "${shop}", in euros?`, data: { receipts, shop } }
        },
      },
    ],
    box: () => ({
      image: { kind: 'paddock-base' },
      profile: 'user',
      user: null,
      workdir: '/workspace',
      env: {},
      network: 'none',
      agentTimeoutMs: 5 * 60_000,
      verifyTimeoutMs: null,
    }),
    setup: async ({ box, task }) => {
      const lines = task.data.receipts.map(({ day, shop, cents }) => `${day},${shop},${(cents / 100).toFixed(2)}\n`)
      await box.putFiles('/workspace', [{ path: receiptsFile, data: lines.join('') }])
    },
    tools: () => [lookUp, submit],
    systemPrompt: () => 'Answer the question with the tools that you have, and hand the answer in with `submit`.',
    collect: async ({ box }) => {
      await box.killBackground()
      await box.freeze()
      return { items: [{ path: answerPath, content: await box.getFiles(answerPath) }] }
    },
    verify: async ({ task, artifacts }) => {
      const answer = artifactText(artifacts, answerPath)
      const right =
        answer === null ? { value: 0, why: 'nothing was handed in' } : await rules.numeric(gold(task.data))(answer)
      return scored(right.value, {
        verifier: { id: name, version, sha256: sha256(`${name} ${version}: numeric, no tolerance`) },
        // Nothing of the agent's runs anywhere: a rule on the host looks at what it handed in.
        trust: 'host',
        components: { handed_in: answer === null ? 0 : 1, right: right.value },
        evidence: right.why,
      })
    },
    scripts: {
      // `paddock validate` runs them all: the oracle must score 1, everything else less.
      oracle: async ({ data: { shop }, data: all }) => ({
        name: 'oracle',
        weight: 4,
        script: {
          steps: [
            { tool: 'look_up', args: { shop } },
            { tool: 'submit', args: { answer: gold(all).toFixed(2) } },
            { say: 'I handed the sum in.' },
          ],
        },
      }),
      cheats: async ({ data: { receipts } }) => [
        {
          name: 'every number there is',
          weight: 1,
          script: { steps: [{ tool: 'submit', args: { answer: receipts.map(({ cents }) => cents / 100).join(' ') } }] },
        },
      ],
      distractors: async ({ data: { receipts } }) => [
        {
          name: 'all shops together',
          weight: 2,
          script: {
            steps: [
              {
                tool: 'submit',
                args: { answer: (receipts.reduce((sum, { cents }) => sum + cents, 0) / 100).toFixed(2) },
              },
              { say: 'I handed the sum in.' },
            ],
          },
        },
      ],
    },
  })
}
