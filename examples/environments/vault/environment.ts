/**
 * A vault that one agent cannot open: the opener stands before the door and does not know the codes, the guide has the codebook and does not see the
 * door. They take turns in words; one try at the keypad is all there is. docs/guides/several-agents.md explains it.
 */
import type { EnvironmentKit } from '../../../src/envs/index.ts'

const name = 'vault'
const version = '1'
const signs = '/workspace/signs'
const typed = '/workspace/typed'
const talkPath = '/paddock/talk.json'
const done = 'VAULT OPEN'

export default ({
  z,
  defineEnvironment,
  defineTool,
  toolOutcome,
  loadJsonTasks,
  scored,
  unscored,
  sha256,
}: EnvironmentKit) => {
  const data = z.strictObject({
    /** What each sign means; only the guide is told. */
    codebook: z.record(z.string().regex(/^[a-z]+$/), z.string().regex(/^\d$/)),
    /** The signs on the door, in their order; only the opener sees them. */
    door: z.array(z.string()).min(1),
  })
  type Data = ReturnType<typeof data.parse>
  const codeOf = ({ codebook, door }: Data): string => door.map((sign) => codebook[sign] ?? '?').join('')

  const tools = [
    defineTool({
      name: 'look_at_door',
      description: 'Tells the signs on the door, in their order.',
      input: z.object({}),
      run: async ({ box, signal }) => toolOutcome(await box.exec({ command: ['cat', signs] }, { signal })),
    }),
    defineTool({
      name: 'enter_code',
      description: 'Types the code at the door. There is one try.',
      input: z.object({ code: z.string().regex(/^\d+$/).describe('The digits.') }),
      run: async ({ box, signal }, { code }) =>
        toolOutcome(
          await box.exec(
            { command: ['sh', '-c', 'test ! -e "$1" && printf %s "$2" > "$1" && echo typed', 'sh', typed, code] },
            { signal },
          ),
        ),
    }),
  ]

  const said = z.array(z.object({ agent: z.string().optional(), text: z.string() }))
  const book = ({ codebook }: Data): string =>
    Object.entries(codebook)
      .map(([sign, digit]) => `${sign} is ${digit}`)
      .join(', ')

  return defineEnvironment({
    name,
    apiVersion: 1,
    verifierVersion: version,
    task: data,
    load: (path, options) => loadJsonTasks(path, { ...options, environment: name, data }),
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
      await box.putFiles('/workspace', [{ path: 'signs', data: task.data.door.join(' ') }])
    },
    tools: () => tools,
    agents: (task) => ({
      by: 'turns',
      maxTurns: 6,
      doneWord: done,
      agents: [
        {
          name: 'opener',
          prompt: `${task.instruction} You stand before the door of vault ${task.name}. Look at it, tell the guide its signs, and type the code that the guide gives you. Say ${done} when you have typed it.`,
          tools: ['look_at_door', 'enter_code'],
        },
        {
          name: 'guide',
          prompt: `You have the codebook of vault ${task.name}: ${book(task.data)}. Somebody before the door tells you its signs. Answer with their digits, in their order and without spaces.`,
          tools: [],
        },
      ],
    }),
    collect: async ({ box, talk }) => {
      await box.killBackground()
      await box.freeze()
      const bytes = Buffer.from(JSON.stringify((await talk?.()) ?? []))
      return {
        items: [
          { path: typed, content: await box.getFiles(typed, { maxBytes: 1000 }) },
          {
            path: talkPath,
            content: {
              found: true,
              entries: [{ type: 'file', path: 'talk.json', mode: 0o444, data: bytes }],
              refused: [],
              cutShort: false,
              totalBytes: bytes.length,
            },
          },
        ],
      }
    },
    verify: async ({ task, artifacts }) => {
      const text = (path: string): string => {
        const entry = artifacts.items.find((item) => item.path === path)?.content.entries[0]
        return entry?.type === 'file' ? new TextDecoder().decode(entry.data) : ''
      }
      const code = codeOf(task.data)
      const verifier = { id: `${name}/${task.name}`, version, sha256: sha256(JSON.stringify([version, task.data])) }
      const facts = { verifier, trust: 'host' as const }
      if (artifacts.items.length === 0) return unscored('infra_error', 'Nothing of the work is there.', facts)
      const guide = said
        .parse(JSON.parse(text(talkPath) || '[]'))
        .flatMap((one) => (one.agent === 'guide' ? [one.text] : []))
        .join('\n')
      const told = guide.includes(code) ? 1 : 0
      const open = text(typed) === code ? 1 : 0
      // Whoever guesses a code that nobody told opens no door by talking: the opener needs the guide.
      return scored(open * told, {
        ...facts,
        components: { told, open },
        evidence: `the code is ${code}; typed: ${text(typed) || 'nothing'}; the guide said: ${guide || 'nothing'}`,
        // The guide is not to blame for what the opener types.
        byPolicy: { guide: told },
      })
    },
    scripts: {
      oracle: async ({ data: own }) => {
        const { door } = own
        return {
          name: 'they talk',
          weight: 2,
          script: { steps: [] },
          agents: {
            opener: {
              steps: [
                { tool: 'look_at_door', args: {} },
                { say: `The door shows ${door.join(' ')}.` },
                { tool: 'enter_code', args: { code: codeOf(own) } },
                { say: done },
              ],
            },
            guide: { steps: [{ say: codeOf(own) }] },
          },
        }
      },
      cheats: async ({ data: own }) => [
        {
          name: 'says that it is open',
          weight: 1,
          script: { steps: [] },
          agents: { opener: { steps: [{ say: done }] }, guide: { steps: [] } },
        },
        {
          name: 'opens it without the guide',
          weight: 1,
          script: { steps: [] },
          agents: {
            opener: { steps: [{ tool: 'enter_code', args: { code: codeOf(own) } }, { say: done }] },
            guide: { steps: [] },
          },
        },
      ],
      distractors: async ({ data: own }) => {
        const wrong = codeOf(own)
          .split('')
          .map((digit) => String((Number(digit) + 1) % 10))
          .join('')
        return [
          {
            name: 'reads and types wrongly',
            weight: 1,
            script: { steps: [] },
            agents: {
              opener: {
                steps: [
                  { tool: 'look_at_door', args: {} },
                  { say: `The door shows ${own.door.join(' ')}.` },
                  { tool: 'enter_code', args: { code: wrong } },
                  { say: done },
                ],
              },
              guide: { steps: [{ say: wrong }] },
            },
          },
        ]
      },
    },
  })
}
