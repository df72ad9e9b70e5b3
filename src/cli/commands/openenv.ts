import type { Command } from 'commander'
import { type Cli, type CommandContext, repeated, wholeNumber } from '../cli.ts'
import { environmentsOf } from '../environments.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { aborted } from '../io.ts'
import { plural } from '../present/units.ts'
import { type PublicNetwork, publicNetworkOf, publicNetworkOption } from '../public-network.ts'
import { sandboxOf } from '../sandbox.ts'
import { taskPlace } from '../task-place.ts'

interface OpenEnvOptions {
  readonly env: string
  readonly task?: readonly string[]
  readonly host: string
  readonly port: number
  readonly maxSessions: number
  readonly trustTasks?: boolean
  readonly publicNetwork?: PublicNetwork
}

/** `paddock openenv`: serves tasks to white-box trainers that speak OpenEnv, until Ctrl-C. */
export function addOpenEnv(program: Command, cli: Cli): void {
  program
    .command('openenv')
    .description("serve tasks the OpenEnv way (reset, step, MCP tools, state), for trainers that own the agent's loop")
    .argument('<tasks>', 'directory of a task, or of tasks')
    .option('--env <name>', 'environment of the tasks: a name, or the path of a plugin', 'terminal')
    .option('--task <name>', 'only this task; may be repeated', repeated)
    .option('--host <address>', 'address to listen on; it has no authentication', '127.0.0.1')
    .option('--port <n>', 'port to listen on, 0 takes a free one', wholeNumber(0, 65_535), 8000)
    .option('--max-sessions <n>', 'sessions at once, each with a box of its own', wholeNumber(1), 4)
    .option('--trust-tasks', 'let programs that the tasks bring for this machine run, as you (cua-bench, sidecars)')
    .addOption(publicNetworkOption())
    .addHelpText('after', '\nExample:\n  $ paddock openenv examples/tasks/sql --env sql --port 8000')
    .action(async (path: string, options: OpenEnvOptions, command: Command) =>
      cli.run(command, publicNetworkOf(options), (context) => openEnv(context, path, options)),
    )
}

async function openEnv(context: CommandContext, path: string, options: OpenEnvOptions): Promise<ExitCode> {
  const { loadEach, serveOpenEnv } = await import('../../envs/index.ts')
  const { io, loaded } = context
  const { env, host, port, maxSessions, trustTasks = false } = options
  const environment = (await environmentsOf(loaded, { also: env, cwd: io.cwd, trustTasks })).get(env)
  const place = taskPlace(io.cwd, path)
  const { tasks, refused } = await loadEach(environment, place, { signal: io.signal, only: options.task ?? [] })
  const [first] = refused
  if (first !== undefined) throw first.error
  const sandbox = await sandboxOf(loaded.config)
  try {
    await using server = await serveOpenEnv({ environment, tasks, sandbox, host, port, maxSessions })
    const { url } = server
    if (context.json) io.out(JSON.stringify({ type: 'ready', url, tasks: tasks.map(({ name }) => name) }))
    else io.out(`${plural(tasks.length, 'task')} of ${environment.name} at ${url}`)
    await aborted(io.signal)
    return exitCode.ok
  } finally {
    await sandbox.close()
  }
}
