/**
 * A shop's assistant: a customer wants something of an order, and says what only when asked. The tools keep the shop's rules, the verifier
 * looks at what stands in the database afterwards and at what the customer was told. docs/guides/tasks-with-a-user.md explains it.
 */
import type { EnvironmentKit } from '../../../src/envs/index.ts'

const name = 'orders'
const version = '1'
const database = '/workspace/orders.db'
const talkPath = '/paddock/talk.json'

/** One program for all that is done with the database, so that nothing of it is built from the agent's words. */
const program = `
import json, sqlite3, sys
path, act, *args = sys.argv[1:]
db = sqlite3.connect(path)
db.row_factory = sqlite3.Row
def rows(where='', *values):
    return [dict(row) for row in db.execute('SELECT id, customer, item, cents, state FROM orders' + where + ' ORDER BY id', values)]
if act == 'make':
    db.execute('CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT, item TEXT, cents INTEGER, state TEXT)')
    db.executemany('INSERT INTO orders VALUES (:id, :customer, :item, :cents, :state)', json.loads(args[0]))
elif act == 'dump':
    print(json.dumps(rows()))
elif act == 'find':
    print(json.dumps(rows(' WHERE customer = ? COLLATE NOCASE', args[0])))
else:
    found = rows(' WHERE id = ?', args[0])
    if not found:
        sys.exit('There is no order ' + args[0])
    if found[0]['state'] != 'open':
        sys.exit('Order ' + args[0] + ' is ' + found[0]['state'] + ': only open orders are changed')
    if act == 'cancel':
        db.execute("UPDATE orders SET state = 'cancelled' WHERE id = ?", (args[0],))
    else:
        db.execute('UPDATE orders SET item = ? WHERE id = ?', (args[1], args[0]))
    print('done')
db.commit()
`

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
  const order = z.strictObject({
    id: z.string().regex(/^\d+$/),
    customer: z.string(),
    item: z.string(),
    cents: z.int(),
    state: z.enum(['open', 'sent', 'cancelled']),
  })
  const data = z.strictObject({
    orders: z.array(order).min(1),
    /** What must stand in the database afterwards; nothing else may have changed. */
    afterwards: z.array(order.partial().required({ id: true })),
    /** What the customer must have been told: each of these stands in something that the agent said. */
    told: z.array(z.string().min(1)),
    /** Who the customer is and what it wants. The agent never sees it. */
    customer: z.union([
      z.strictObject({ replies: z.array(z.string()) }),
      z.strictObject({ persona: z.string(), goal: z.string() }),
    ]),
    /** What an assistant that knows would do: tools called and words said. */
    solved: z.array(
      z.union([
        z.strictObject({ say: z.string() }),
        z.strictObject({ tool: z.string(), args: z.record(z.string(), z.unknown()) }),
      ]),
    ),
  })
  type Order = ReturnType<typeof order.parse>

  const orders = (title: string, description: string, input: Parameters<typeof defineTool>[0]['input'], act: string) =>
    defineTool({
      name: title,
      description,
      input,
      run: async ({ box, signal }, given) => {
        const args = Object.values(z.record(z.string(), z.string()).parse(given))
        return toolOutcome(
          await box.exec({ command: ['python3', '-I', '-c', program, database, act, ...args] }, { signal }),
        )
      },
    })
  const id = z.string().regex(/^\d+$/).describe('Number of the order.')
  const tools = [
    orders('find_orders', 'Lists the orders of a customer.', z.object({ customer: z.string().min(1) }), 'find'),
    orders('cancel_order', 'Cancels an open order. Ask the customer first.', z.object({ id }), 'cancel'),
    orders(
      'change_item',
      'Changes the item of an open order to another one at the same price.',
      z.object({ id, item: z.string().min(1) }),
      'change',
    ),
  ]

  const change = order.partial().required({ id: true })
  const whole = (before: readonly Order[], changes: readonly ReturnType<typeof change.parse>[]) =>
    before
      .map((one) => ({ ...one, ...changes.find((other) => other.id === one.id) }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1))

  const said = z.array(z.object({ by: z.enum(['agent', 'user']), text: z.string() }))

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
    setup: async ({ box, task, signal }) => {
      const made = JSON.stringify(task.data.orders)
      toolOutcome(await box.exec({ command: ['python3', '-I', '-c', program, database, 'make', made] }, { signal }))
    },
    tools: () => tools,
    systemPrompt: () =>
      'You are the assistant of a shop. Find out what the customer wants, do it with the tools where the rules allow it, and say in the end what was done and at what price.',
    user: ({ data: { customer } }) =>
      'replies' in customer
        ? { by: 'record', maxTurns: 12, replies: customer.replies }
        : { by: 'model', maxTurns: 12, ...customer },
    collect: async ({ box, talk }) => {
      await box.killBackground()
      await box.freeze()
      const bytes = Buffer.from(JSON.stringify((await talk?.()) ?? []))
      return {
        items: [
          { path: database, content: await box.getFiles(database, { maxBytes: 1_000_000 }) },
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
    verify: async ({ task, artifacts, openBox, signal }) => {
      const file = (path: string): Uint8Array | null => {
        const entry = artifacts.items.find((item) => item.path === path)?.content.entries[0]
        return entry?.type === 'file' ? entry.data : null
      }
      const { orders: before, afterwards, told } = task.data
      const verifier = {
        id: `${name}/${task.name}`,
        version,
        sha256: sha256(JSON.stringify([version, before, afterwards, told])),
      }
      const facts = { verifier, trust: 'separate' as const }
      if (artifacts.items.length === 0) return unscored('infra_error', 'Nothing of the work is there.', facts)
      const talk = said.parse(JSON.parse(new TextDecoder().decode(file(talkPath) ?? Buffer.from('[]'))))
      const words = talk.flatMap(({ by, text }) => (by === 'agent' ? [text.toLowerCase()] : []))
      const missing = told.filter((one) => !words.some((text) => text.includes(one.toLowerCase())))
      const components = { told: told.length === 0 ? 1 : 1 - missing.length / told.length, database: 0 }
      const left = file(database)
      if (left === null) return scored(0, { ...facts, components, evidence: 'the database is gone' })
      await using box = await openBox({
        image: { kind: 'paddock-base' },
        profile: 'user',
        user: null,
        workdir: '/workspace',
        env: {},
        network: 'none',
        agentTimeoutMs: null,
        verifyTimeoutMs: null,
      })
      await box.putFiles('/workspace', [{ path: 'orders.db', data: left }])
      const dumped = await box.exec(
        { command: ['python3', '-I', '-c', program, database, 'dump'], eventRole: 'verifier' },
        { signal },
      )
      if (dumped.kind === 'box_dead') return unscored('infra_error', 'The box of the verifier died.', facts)
      const text = new TextDecoder().decode(dumped.stdout)
      const right =
        dumped.kind === 'exited' &&
        dumped.code === 0 &&
        JSON.stringify(z.array(order.loose()).parse(JSON.parse(text))) === JSON.stringify(whole(before, afterwards))
      return scored(right && missing.length === 0 ? 1 : 0, {
        ...facts,
        components: { ...components, database: right ? 1 : 0 },
        evidence: [
          right ? 'the database is as it should be' : `the database is not: ${text.trim().slice(0, 500)}`,
          ...missing.map((one) => `the customer was not told ${JSON.stringify(one)}`),
        ].join('\n'),
      })
    },
    scripts: {
      oracle: async ({ data: { solved } }) => ({ name: 'oracle', weight: 4, script: { steps: solved } }),
      cheats: async ({ data: { told } }) => [
        {
          name: 'says that it is done',
          weight: 1,
          script: { steps: [{ say: `All is done as you wished. ${told.join(' ')}` }] },
        },
      ],
      distractors: async ({ data: { solved } }) => [
        {
          name: 'works and tells nothing',
          weight: 1,
          script: { steps: [...solved.filter((step) => 'tool' in step), { say: 'Have a nice day.' }] },
        },
      ],
    },
  })
}
