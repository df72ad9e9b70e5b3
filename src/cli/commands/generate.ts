import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { generatedPlace, makeTask, PaddockError, placeText, type Task } from '../../core/index.ts'
import type { Environment, TaskGenerator } from '../../envs/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { environmentsOf } from '../environments.ts'
import { type ExitCode, exitCode } from '../exit.ts'
import { printable } from '../present/colour.ts'
import { plural } from '../present/units.ts'
import { sandboxOf } from '../sandbox.ts'

interface GenerateOptions {
  readonly seed: number
  readonly count: number
  readonly generator?: string
  readonly level?: readonly [number, number]
  readonly split?: string
  readonly out: string
  readonly validate: boolean
  readonly parallel: number
}

/** `paddock generate`: tasks of a generator, proven and written to a file. Exit code 1 when one was not proven, 3 when boxes failed. */
export function addGenerate(program: Command, cli: Cli): void {
  program
    .command('generate')
    .description('write tasks of a generator of an environment, each proven by its own scripts')
    .argument('<env>', 'environment with a generator (search, sql, terminal): a name, or the path of a plugin')
    .requiredOption('--out <file>', 'where the tasks are written, one a line (.jsonl)', jsonLines)
    .option('--generator <name>', 'which generator, of an environment with several')
    .option('--seed <n>', 'the first seed', wholeNumber(0), 0)
    .option('--count <n>', 'how many seeds', wholeNumber(1), 10)
    .option('--level <a..b>', 'at which levels each (default: all that there are)', levels)
    .option('--split <name>', 'split of the tasks (default: train)')
    .option('--no-validate', 'write them without a proof, which needs boxes')
    .option('--parallel <n>', 'scripts at once', wholeNumber(1), 2)
    .addHelpText(
      'after',
      `
Example:
  $ paddock generate sql --seed 0 --count 20 --level 1..3 --out tasks.jsonl
  $ paddock run tasks.jsonl --env sql --n 4

The same seed and level give the same task on every machine. Without a file: \`paddock run records:0..19:1..3 --env sql\`.`,
    )
    .action(async (env: string, options: GenerateOptions, command: Command) =>
      cli.run(command, {}, async (context) => generate(context, env, options)),
    )
}

async function generate(context: CommandContext, env: string, options: GenerateOptions): Promise<ExitCode> {
  const { generatedLine, validateTasks } = await import('../../envs/index.ts')
  const { io, loaded } = context
  const environment = (await environmentsOf(loaded, { also: env, cwd: io.cwd })).get(env)
  const generator = generatorOf(environment, options.generator)
  const place = placeText({
    name: generator.name,
    seeds: [options.seed, options.seed + options.count - 1],
    levels: options.level ?? [1, generator.levels],
  })
  const made = await environment.load(place, { signal: io.signal })
  const { split } = options
  const tasks = split === undefined ? made : made.map((task) => makeTask({ ...task, split }))
  let kept: readonly Task[] = tasks
  let problems: readonly string[] = []
  let code: ExitCode = exitCode.ok
  if (options.validate) {
    context.notice(`Proving ${plural(tasks.length, 'task')} of ${place} …`)
    const sandbox = await sandboxOf(loaded.config)
    try {
      const rows = await validateTasks({
        environment,
        tasks,
        sandbox,
        signal: io.signal,
        parallel: options.parallel,
        onProgress: (line) => context.notice(context.paint('dim', printable(line))),
        onResult: ({ name, status }) => context.notice(`${status}  ${printable(name)}`),
      })
      kept = rows.flatMap(({ task, status }) => (status === 'proven' && task !== null ? [task] : []))
      problems = rows.flatMap((row) => row.problems.map((problem) => `${row.name}: ${problem}`))
      if (kept.length < tasks.length) {
        code = rows.some(({ status }) => status === 'infra') ? exitCode.infra : exitCode.problems
      }
    } finally {
      await sandbox.close()
    }
  }
  const file = resolve(io.cwd, options.out)
  await writeFile(file, kept.map(generatedLine).join(''))
  context.result({ file, place, tasks: kept.length, leftOut: tasks.length - kept.length, problems }, () =>
    [
      ...problems.map((problem) => context.paint('bad', `problem  ${printable(problem)}`)),
      `${plural(kept.length, 'task')} of ${place} in ${options.out}${options.validate ? ', each proven' : ', none proven'}` +
        (kept.length < tasks.length ? `; ${tasks.length - kept.length} left out` : ''),
      `  ${context.called} run ${options.out} --env ${env}`,
    ].join('\n'),
  )
  return code
}

/** The generator of that name, or the only one. Throws `USAGE`. */
function generatorOf({ name, generators }: Environment, asked: string | undefined): TaskGenerator {
  const [first, ...others] = asked === undefined ? generators : generators.filter((one) => one.name === asked)
  if (first !== undefined && others.length === 0) return first
  const names = generators.map((one) => one.name).join(', ')
  if (generators.length === 0) {
    throw new PaddockError('USAGE', `the environment ${name} has no generator`, {
      fix: 'Give search, sql, terminal or a plugin with `generators`.',
    })
  }
  const what = first === undefined ? `has no generator ${asked}` : 'has several generators'
  throw new PaddockError('USAGE', `the environment ${name} ${what}`, { fix: `Give --generator: ${names}.` })
}

/** A file that is read back as one of generated tasks. */
function jsonLines(text: string): string {
  if (text.endsWith('.jsonl')) return text
  throw new InvalidArgumentError('Give a name that ends in .jsonl.')
}

function levels(text: string): readonly [number, number] {
  const place = /^\d+(\.\.\d+)?$/.test(text) ? generatedPlace(`level:0:${text}`) : null
  if (place === null) throw new InvalidArgumentError('Give a level, or two as in 1..3.')
  return place.levels
}
