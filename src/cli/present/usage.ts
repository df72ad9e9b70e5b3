import type { Argument, Command, CommanderError, Option } from 'commander'
import { nearest } from '../../config/index.ts'
import { PaddockError } from '../../core/index.ts'

/** Options before the command that have a value behind them. */
export const globalsWithValue: ReadonlySet<string> = new Set(['--config', '--data', '--catalogue'])

/** Words of other programs for what has another name here. Each leads to the first of its words that is a choice. */
const otherWords: Readonly<Record<string, readonly string[]>> = {
  create: ['new', 'create'],
  add: ['new', 'create'],
  init: ['new', 'create'],
  ls: ['list', 'ls'],
  rm: ['remove', 'revoke', 'drop'],
  remove: ['rm', 'revoke', 'drop'],
  delete: ['rm', 'revoke', 'drop'],
  start: ['serve', 'run'],
  eval: ['run'],
  check: ['doctor', 'fsck'],
  log: ['show', 'logs'],
  get: ['show', 'fetch'],
  help: ['--help'],
}

/**
 * The mistake in a command line, and how to write it: the option that is missing with its choices, the nearest name, or the form of
 * the whole command.
 */
export function usageError(error: CommanderError, program: Command, args: readonly string[]): PaddockError {
  const command = commandIn(program, args)
  const name = nameOf(command)
  const [first = ''] = error.message.replace(/^error: /, '').split('\n')
  const quoted = /'([^']*)'/.exec(first)?.[1] ?? ''
  const told = (message: string, fix: string): PaddockError => new PaddockError('USAGE', message, { cause: error, fix })
  switch (error.code) {
    case 'commander.missingMandatoryOptionValue':
    case 'commander.optionMissingArgument': {
      const missing = error.code === 'commander.optionMissingArgument' ? 'needs a value' : 'is missing'
      const option = command.options.find(({ flags }) => flags === quoted)
      return told(`${name}: ${quoted} ${missing}`, `Add \`${quoted}\`${option === undefined ? '' : meaning(option)}.`)
    }
    case 'commander.missingArgument': {
      const argument = command.registeredArguments.find((one) => one.name() === quoted)
      const of = argument === undefined ? '' : meaning(argument)
      return told(`${name}: <${quoted}> is missing`, `Write \`${formOf(command)}\`; <${quoted}>${of}.`)
    }
    case 'commander.excessArguments':
      return told(`${name}: ${first}`, `Write \`${formOf(command)}\`.`)
    case 'commander.unknownCommand': {
      const names = command.commands.map((one) => one.name())
      return told(`${name}: there is no command ${quoted}`, `Write ${choiceFor(quoted, names)}.`)
    }
    case 'commander.unknownOption': {
      const flags = (of: Command) => of.options.flatMap(({ long }) => (long == null ? [] : [long]))
      const [own, all] = [flags(command), [...flags(command), ...flags(program)]]
      const fix = nearest(quoted, all) === null ? `It takes ${own.join(', ')}` : `Write ${choiceFor(quoted, all)}`
      return told(`${name}: there is no option ${quoted}`, own.length === 0 ? `Leave ${quoted} out.` : `${fix}.`)
    }
    case 'commander.help': {
      const names = command.commands.map((one) => one.name())
      return told(`${name} needs one of its commands`, `Write \`${name} <command>\`: ${names.join(', ')}.`)
    }
    default:
      return wrongValue(first, command, told)
  }
}

/** `option '--n <n>' argument 'x' is invalid. Give a whole number.`, or the same of an argument with its choices. */
function wrongValue(
  text: string,
  command: Command,
  told: (message: string, fix: string) => PaddockError,
): PaddockError {
  const [, what = text, fix = ''] = /^(.*?)\. (.*)$/.exec(text) ?? []
  const value = /(?:argument|value) '([^']*)' /.exec(what)?.[1] ?? ''
  const place = /^option '([^']*)'/.exec(what)?.[1] ?? `<${/for argument '([^']*)'/.exec(what)?.[1] ?? ''}>`
  const choices = /^Allowed choices are (.*)\.$/.exec(fix)?.[1]?.split(', ')
  const message = `${nameOf(command)}: ${JSON.stringify(value)} is not a value of ${place}`
  if (choices !== undefined) return told(message, `Write ${choiceFor(value, choices)}.`)
  return fix === '' ? told(`${nameOf(command)}: ${text}`, `Write \`${formOf(command)}\`.`) : told(message, fix)
}

/** The choice that a word stands for, and all of them. */
function choiceFor(word: string, choices: readonly string[]): string {
  const known = otherWords[word]?.find((one) => choices.includes(one))
  const meant = known ?? choices.find((one) => one === `${word}s` || `${one}s` === word) ?? nearest(word, choices)
  if (meant === null) return choices.length === 1 ? `\`${choices[0] ?? ''}\`` : `one of ${choices.join(', ')}`
  return `\`${meant}\`${choices.length > 1 && choices.length < 15 ? ` (there are ${choices.join(', ')})` : ''}`
}

function meaning({ argChoices, description }: Argument | Option): string {
  if (argChoices !== undefined) return `: ${argChoices.join(', ')}`
  return description === '' ? '' : `: ${description.replace(/\.$/, '')}`
}

/** The innermost command that the words name. */
function commandIn(program: Command, args: readonly string[]): Command {
  let command = program
  for (const [at, word] of args.entries()) {
    if (word.startsWith('-') || globalsWithValue.has(args[at - 1] ?? '')) continue
    const inner = command.commands.find((one) => one.name() === word || one.aliases().includes(word))
    if (inner === undefined) break
    command = inner
  }
  return command
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}

/** `paddock verdict <rollout> --source <name>`: arguments and the options that it cannot do without. */
function formOf(command: Command): string {
  const needed = command.options.filter(({ mandatory }) => mandatory).map(({ flags }) => flags)
  const taken = command.registeredArguments.map((one) => {
    const name = `${one.name()}${one.variadic ? '...' : ''}`
    return one.required ? `<${name}>` : `[${name}]`
  })
  return [nameOf(command), ...taken, ...needed].join(' ')
}
