import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { type Config, type ConfigInput, engineUrls } from '../../config/index.ts'
import { isLoopback, PaddockError } from '../../core/index.ts'
import { type Cli, type CommandContext, repeated, wholeNumber } from '../cli.ts'
import { environmentFinder } from '../environments.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import type { Joined, NodeClient } from '../node/client.ts'
import type { NodeNews } from '../node/news.ts'
import type { Shard } from '../node/shard.ts'
import { plural } from '../present/units.ts'
import { trustOwnCa } from '../tls.ts'
import { version } from '../version.ts'

interface NodeOptions {
  readonly join: string
  readonly tokenFile?: string
  readonly name?: string
  readonly labels?: readonly string[]
  readonly places?: number
  readonly shards?: number
  /** Which of how many processes this one is: `1/2`. */
  readonly shard?: string
  readonly engine?: string
  readonly plainHttp?: boolean
  readonly tlsCa?: string
}

/** So long a node waits for a coordinator that has no engine yet before it asks again. */
const engineMs = 1000

/** `paddock node`: does rollouts of a coordinator on this machine until Ctrl-C. */
export function addNode(program: Command, cli: Cli): void {
  program
    .command('node')
    .description(
      'do rollouts of a coordinator on this machine: claims jobs, runs each as `paddock run` would, hands it in',
    )
    .requiredOption('--join <url>', 'control listener of the coordinator')
    .option('--token-file <file>', 'file with a token of role node (default: PADDOCK_CONTROL_TOKEN)')
    .option('--name <name>', 'what its rollouts are labelled with (default: the name of this machine)')
    .option('--labels <list>', 'what this machine has, separated by commas: gpu,gui; may be repeated', repeated)
    .option('--places <n>', 'rollouts at once (default: what `run.limits` admits)', wholeNumber(1))
    .option(
      '--shards <n>',
      'processes that share the work and the places, behind one listener (default: 1)',
      wholeNumber(1),
    )
    .addOption(new Option('--shard <place>', 'one of these processes').hideHelp())
    .option('--engine <url>', 'the engine as this machine reaches it (default: as the coordinator says)')
    .option('--tls-ca <file>', 'PEM file of certificates to trust besides those of this machine')
    .option('--plain-http', 'join a coordinator on another machine without TLS: the network encrypts')
    .addHelpText(
      'after',
      `
Example:
  $ paddock token create --role node --name gpu-1 > node-token      at the coordinator
  $ paddock node --join http://127.0.0.1:8791 --token-file node-token --places 8

Ctrl-C gives back what is under way. What had ended when a node was killed is handed in by its next start on the same data directory.`,
    )
    .action(async (options: NodeOptions, command: Command) =>
      cli.run(command, overridesOf(options), (context) => work(context, options)),
    )
}

async function work(context: CommandContext, options: NodeOptions): Promise<ExitCode> {
  const { io, json } = context
  const { shards = 1, places } = options
  const { nodeLabel, nodeName } = await import('../../server/index.ts')
  const { NodeClient: Client } = await import('../node/client.ts')
  const origin = originOf(options, context.loaded.config)
  await trustOwnCa(context.loaded.config)
  const name = checked(nodeName, options.name ?? hostname(), '--name')
  const given = (options.labels ?? [])
    .flatMap((list) => list.split(','))
    .map((label) => checked(nodeLabel, label, '--labels'))
  const { requireNothingLeft, runSharded } = await import('../node/sharded.ts')
  if (options.shard === undefined) {
    if (shards > 1) {
      checked(nodeName, `${name}.${shards}`, '--name')
      return runSharded(context, { shards, name, places })
    }
    await requireNothingLeft(context.loaded.config.store.directory, 1)
  }
  const node = { name, labels: [...new Set([`arch=${process.arch}`, ...given])], paddock: version }
  const hardStop = new AbortController()
  const client = new Client({
    origin,
    token: await tokenOf(context, options),
    signal: hardStop.signal,
    onUnreachable: (why) => context.notice(`The coordinator ${origin} does not answer (${why}): asking again …`),
  })
  const counts = { handed_in: 0, refused: 0 }
  const tell = (news: NodeNews): void => {
    if (news.type === 'handed_in' || news.type === 'refused') counts[news.type] += 1
    if (json) io.out(JSON.stringify(news))
    else io.out(newsLine(news))
  }
  // What is given back at Ctrl-C is told to the coordinator; one that does not answer is not waited for.
  const onAbort = (): void =>
    void setTimeout(patienceMs, undefined, { ref: false }).then(() => hardStop.abort(new Error('the node stops')))
  io.signal.addEventListener('abort', onAbort, { once: true })
  const { Shard } = await import('../node/shard.ts')
  const shard = options.shard === undefined ? null : await Shard.begin(options.shard)
  try {
    for (;;) {
      const joined = await joinWithEngine(context, () => client.open(node))
      if (joined === null) break
      const how = await atWork(context, options, {
        client,
        joined,
        rejoin: () => client.open(node),
        name,
        shard,
        tell,
      })
      if (how === 'stopped') break
      if (how === 'engines') context.notice('The coordinator has another engine: joining anew …')
      else context.notice('All is handed in: joining anew with an empty store …')
    }
  } finally {
    io.signal.removeEventListener('abort', onAbort)
    hardStop.abort(new Error('the node stops'))
    shard?.end()
  }
  context.notice(`${plural(counts.handed_in, 'rollout')} handed in, ${counts.refused} refused.`)
  return exitCode.ok
}

/** After Ctrl-C. */
const patienceMs = 30_000

/** Joins once the coordinator has an engine. Null: Ctrl-C came before. */
async function joinWithEngine(context: CommandContext, open: () => Promise<Joined>): Promise<Joined | null> {
  const { io } = context
  for (let told = false; !io.signal.aborted; told = true) {
    const joined = await open()
    if (joined.engines !== null) return joined
    if (!told) context.notice('The coordinator has no engine yet: waiting …')
    await setTimeout(engineMs, undefined, { signal: io.signal }).catch(() => undefined)
  }
  return null
}

async function atWork(
  context: CommandContext,
  options: NodeOptions,
  {
    client,
    joined,
    rejoin,
    name,
    shard,
    tell,
  }: {
    readonly client: NodeClient
    readonly joined: Joined
    readonly rejoin: () => Promise<Joined>
    readonly name: string
    readonly shard: Shard | null
    readonly tell: (news: NodeNews) => void
  },
): Promise<'stopped' | 'engines' | 'store'> {
  const { io, loaded, json } = context
  const { openOwner } = await import('../owner.ts')
  const { openOrder } = await import('../execute.ts')
  const { NodeWorker } = await import('../node/worker.ts')
  const { handedJob, heldJob, JobFiles } = await import('../node/job-files.ts')
  const { PastStores } = await import('../node/past-stores.ts')
  const { copyOfTasks } = await import('../node/task-copy.ts')
  const { WeightsLoop } = await import('../node/weights-loop.ts')
  const { NodeVerifier } = await import('../node/verifier.ts')
  const { verifiesAt, VerifierBoxes } = await import('../node/verifies-at.ts')
  const { defaultLimits, FollowWeights } = await import('../../rollout/index.ts')
  const { shareOfConfig } = await import('../node/share.ts')
  const place = shard?.place
  const config = place === undefined ? loaded.config : shareOfConfig(loaded.config, place.index, place.count)
  const refuse = async (): Promise<never> =>
    Promise.reject(
      new PaddockError('NODE_UNFIT', 'a node takes no runs of its own', { fix: 'Give them to the coordinator.' }),
    )
  if (config.store.catalogue !== null) {
    throw new PaddockError(
      'NODE_UNFIT',
      'a node records beside its own log, and a catalogue in PostgreSQL is configured',
      {
        fix: 'Leave `store.catalogue` and PADDOCK_CATALOGUE to the coordinator.',
      },
    )
  }
  const at = config.store.directory
  const outbox = new JobFiles(join(at, 'node-jobs'), heldJob)
  const handed = new JobFiles(join(at, 'node-handed'), handedJob)
  const past = new PastStores({ directory: at, keepMs: config.node.keepMs, held: outbox, handed })
  await past.tidy()
  const owner = await openOwner({
    // Ports of its own choice: nobody else has to know them.
    config: {
      ...config,
      engine: engineFor(config.engine, joined, options),
      proxy: { ...config.proxy, port: 0 },
      control: { ...config.control, host: '127.0.0.1', port: 0, token: null },
    },
    openMode: false,
    signal: io.signal,
    ...(shard === null ? {} : { shard }),
    submit: refuse,
    findRun: refuse,
    findSelector: refuse,
    findEnvironment: environmentFinder(loaded),
  })
  const boxes = new VerifierBoxes(config)
  try {
    const directory = owner.store.directory
    const { agent = defaultLimits().agent } = config.run.limits
    const places = options.places ?? agent
    const run = { ...config.run, limits: { ...config.run.limits, agent: places } }
    const verifier = new NodeVerifier({
      client,
      places: config.run.limits.verify ?? defaultLimits().verify,
      verify: verifiesAt({ client, loaded, sandbox: boxes.open, directory: join(directory, 'node-tasks') }),
      tell,
    })
    const worker: InstanceType<typeof NodeWorker> = new NodeWorker({
      client,
      store: owner.store,
      outbox,
      handed,
      past,
      verifier,
      places,
      joined,
      mark: () => weights.mark,
      rejoin,
      signal: io.signal,
      open: async (order, session) => {
        const tasks = await copyOfTasks(client.filesOfRun(session, order.run.id), join(directory, 'node-tasks'))
        return openOrder({ ...loaded, config: { ...config, run } }, owner, { order, tasks, node: name })
      },
      tell,
    })
    const follow = new FollowWeights({ proxy: owner.proxy, engine: owner.engineUpdates })
    const asked = { client, follow, sessions: () => worker.sessions, onDone: () => worker.look() }
    await using weights = await WeightsLoop.begin(asked, joined.weights)
    await worker.takeUp()
    const ready = {
      type: 'ready',
      name,
      session: joined.session,
      data: directory,
      pid: process.pid,
      engine: owner.engine.description,
    }
    if (json) io.out(JSON.stringify(ready))
    else
      io.out(
        `${context.paint('strong', name)} does rollouts of ${options.join}\nengine    ${owner.engine.description}\nCtrl-C ends.`,
      )
    return await worker.run()
  } finally {
    await boxes.close()
    shard?.close()
    await owner.close()
  }
}

/** As this machine reaches it. Throws `NODE_UNFIT` where the coordinator's is behind its loopback. */
function engineFor<Engine extends { readonly url: unknown; readonly model: unknown; readonly kind: unknown }>(
  configured: Engine,
  { engines }: Joined,
  { engine, join: coordinator }: NodeOptions,
): Engine {
  if (engines === null) throw new PaddockError('INTERNAL', 'a node began without an engine')
  const { urls, kind, model } = engines
  if (engine !== undefined) return { ...configured, kind, model }
  const far = !isLoopback(new URL(coordinator).hostname)
  const hidden = urls.find((url) => isLoopback(new URL(url).hostname))
  if (far && hidden !== undefined) {
    throw new PaddockError(
      'NODE_UNFIT',
      `the engine of the coordinator is at ${hidden}, which no other machine reaches`,
      {
        fix: 'Name it with --engine as this machine reaches it, or start the coordinator with such a URL.',
      },
    )
  }
  return { ...configured, url: urls, kind, model }
}

/** Throws `USAGE`, and `PLAIN_HTTP` for a coordinator elsewhere without TLS. */
function originOf({ join: text }: NodeOptions, { tls }: Pick<Config, 'tls'>): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new PaddockError('USAGE', `--join ${text} is not a URL`, {
      fix: 'Give the URL that `paddock coordinator` prints: `--join https://<host>:<port>`.',
    })
  if (url.protocol === 'http:' && !isLoopback(url.hostname) && !tls.plainHttp) {
    throw new PaddockError('PLAIN_HTTP', `${url.origin} is on another machine, and its token would go there in clear`)
  }
  return url.origin
}

async function tokenOf({ io, loaded }: CommandContext, { tokenFile }: NodeOptions): Promise<string> {
  const text =
    tokenFile === undefined ? loaded.config.control.token : await readFile(resolve(io.cwd, tokenFile), 'utf8')
  if (text !== null && text.trim() !== '') return text.trim()
  throw new PaddockError('USAGE', 'a node needs a token of role node', {
    fix: 'Make one at the coordinator (`paddock token create --role node --name gpu-1`) and give it with --token-file or PADDOCK_CONTROL_TOKEN.',
  })
}

function checked(schema: { safeParse(text: string): { success: boolean } }, text: string, option: string): string {
  if (schema.safeParse(text).success) return text
  throw new PaddockError('USAGE', `${option}: ${JSON.stringify(text)} is not letters, digits, dots and dashes`, {
    fix: 'Use letters, digits, dots and dashes only.',
  })
}

function newsLine(news: NodeNews): string {
  return news.type === 'session'
    ? `session   ${news.session}: ${news.detail}`
    : `${news.type.replace('_', ' ').padEnd(10)} ${news.job}: ${news.detail}`
}

function overridesOf({ engine, tlsCa, plainHttp }: NodeOptions): ConfigInput {
  return {
    ...(engine === undefined ? {} : { engine: engineUrls(engine) }),
    tls: {
      ...(tlsCa === undefined ? {} : { ca: tlsCa }),
      ...(plainHttp === undefined ? {} : { plainHttp }),
    },
  }
}
