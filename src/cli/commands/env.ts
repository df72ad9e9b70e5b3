import { cp, readFile, realpath, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Argument, type Command } from 'commander'
import { makeFolder, PaddockError } from '../../core/index.ts'
import type { Cli } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { packageDirectory } from '../version.ts'

const template = new URL('examples/environments/receipts/', packageDirectory)
const contract = new URL(
  import.meta.url.endsWith('.ts') ? '../../envs/index.ts' : '../../kits/environment.js',
  import.meta.url,
)

/** `paddock env new <name>`: a working environment of one's own to change. */
export function addEnv(program: Command, cli: Cli): void {
  program
    .command('env')
    .description(
      'start an environment of your own: a folder with tasks, tools, a verifier and the scripts that prove it',
    )
    .addArgument(new Argument('<action>', 'what to do').choices(['new']))
    .argument('<name>', 'name of the environment: lower case letters, digits and dashes')
    .option('--into <dir>', 'where the folder is made', '.')
    .addHelpText(
      'after',
      '\nExample:\n  $ paddock env new my-env && paddock validate my-env/tasks --env ./my-env/environment.ts',
    )
    .action(async (_: 'new', name: string, options: { readonly into: string }, command: Command) =>
      cli.run(command, {}, async (context) => {
        const directory = resolve(context.io.cwd, options.into, name)
        await makeEnvironment(name, directory)
        const shown = relative(context.io.cwd, directory)
        const path = shown.startsWith('.') ? shown : `./${shown}`
        context.result({ name, directory }, () =>
          [
            `${path} is a working environment. Prove it, run it, then make it yours:`,
            `  ${context.called} validate ${path}/tasks --env ${path}/environment.ts`,
            `  ${context.called} run ${path}/tasks --env ${path}/environment.ts --n 2`,
          ].join('\n'),
        )
        return exitCode.ok
      }),
    )
}

async function makeEnvironment(name: string, directory: string): Promise<void> {
  if (!/^[a-z][a-z0-9-]*$/.test(name)) {
    throw new PaddockError('USAGE', `${JSON.stringify(name)} cannot be the name of an environment`, {
      fix: 'Use lower case letters, digits and dashes, beginning with a letter.',
    })
  }
  const taken = await stat(directory).then(
    () => true,
    () => false,
  )
  if (taken)
    throw new PaddockError('USAGE', `${directory} is there already`, {
      fix: 'Choose another name, or --into another place.',
    })
  const from = fileURLToPath(template)
  await makeFolder(directory)
  await cp(join(from, 'tasks'), join(directory, 'tasks'), { recursive: true })
  const source = await readFile(join(from, 'environment.ts'), 'utf8')
  const types = await typesFor(directory)
  const own = source
    .replace(/'[^']*\/src\/envs\/index\.ts'/, `'${types}'`)
    .replace("const name = 'receipts'", `const name = '${name}'`)
  await writeFile(join(directory, 'environment.ts'), own)
}

/** Where the one type comes from that a plugin imports. It is for editors: at run time the plugin is given what it needs. */
async function typesFor(directory: string): Promise<string> {
  if (packageDirectory.pathname.includes('/node_modules/')) return 'paddock-rl/environment'
  const path = fileURLToPath(contract)
  return join(relative(await realpath(directory), await realpath(dirname(path))), basename(path))
}
