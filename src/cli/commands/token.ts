import { existsSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { PaddockError } from '../../core/index.ts'
import { createToken, listTokens, offeredRoles, revokeToken, type Role, roles, tokenState } from '../../access/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { table } from '../present/table.ts'

const defaultDays = 90
/** Ten years: a token that nobody will ever end is not made. */
const mostDays = 3650

interface CreateOptions {
  readonly role: Role
  readonly name: string
  readonly days: number
}

/** `paddock token`: tokens of the control API for people and programs, with or without an owner beside it. */
export function addToken(program: Command, cli: Cli): void {
  const token = program
    .command('token')
    .description('tokens for others: each with a name, an end and one role; a running Paddock heeds them at once')
    .addHelpText('after', '\nExample:\n  $ paddock token create --role view --name ann')
  token
    .command('create')
    .description('make a token and print it, this once: only its hash is kept')
    .addOption(
      new Option('--role <role>', `what it may do: ${offeredRoles.join(', ')}`).choices(roles).makeOptionMandatory(),
    )
    .requiredOption(
      '--name <name>',
      'whose it is: lower-case letters, digits, dots, dashes; recorded with what is done under it',
    )
    .option('--days <n>', `days until it ends, at most ${mostDays}`, days, defaultDays)
    .addHelpText('after', '\nExample:\n  $ paddock token create --role view --name ann --days 30')
    .action(async (options: CreateOptions, command: Command) =>
      cli.run(command, {}, async (context) => {
        const made = await createToken(directoryOf(context), { ...options, now: Date.now() })
        const { name, role, endsAt } = made.record
        context.result({ token: made.token, name, role, endsAt }, () => made.token)
        context.notice(`The token ${name} has the role ${role} until ${day(endsAt)}. It is not shown again.`)
        return exitCode.ok
      }),
    )
  token
    .command('list')
    .description('the tokens that were made: name, role, end; none of them in clear')
    .addHelpText('after', '\nExample:\n  $ paddock token list')
    .action(async (_options: unknown, command: Command) =>
      cli.run(command, {}, async (context) => {
        const now = Date.now()
        const tokens = listTokens(directoryOf(context)).map(({ sha256: _hash, ...record }) => ({
          ...record,
          state: tokenState({ sha256: _hash, ...record }, now),
        }))
        context.result({ tokens }, () => {
          if (tokens.length === 0)
            return context.typed('There are none. `paddock token create --role view --name ann` makes one.')
          const rows = tokens.map(({ name, role, state, createdAt, endsAt, revokedAt }) => [
            name,
            role,
            state,
            day(createdAt),
            day(revokedAt ?? endsAt),
          ])
          const header = ['name', 'role', 'state', 'made', 'end'].map((title) => ({ title }))
          return table(header, rows, { paint: context.paint, columns: context.io.columns })
        })
        return exitCode.ok
      }),
    )
  token
    .command('revoke')
    .description('end a token now: it opens nothing more, and what is open under it is closed')
    .argument('<name>', 'name of the token')
    .addHelpText('after', '\nExample:\n  $ paddock token revoke ann')
    .action(async (name: string, _options: unknown, command: Command) =>
      cli.run(command, {}, async (context) => {
        const record = await revokeToken(directoryOf(context), name, Date.now())
        context.result({ name, revokedAt: record.revokedAt }, () => `The token ${name} is revoked.`)
        return exitCode.ok
      }),
    )
}

/** A token is of a store that is there. Throws `NOT_FOUND`. */
function directoryOf({ loaded }: CommandContext): string {
  const { directory } = loaded.config.store
  if (existsSync(directory)) return directory
  throw new PaddockError('NOT_FOUND', `there is no data directory ${directory}`, {
    fix: 'Start Paddock once (`paddock serve`), or name another directory with --data.',
  })
}

function days(text: string): number {
  const count = wholeNumber(1)(text)
  if (count > mostDays) throw new InvalidArgumentError(`Give at most ${mostDays}.`)
  return count
}

function day(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}
