/** Scripts that complete commands and options in a shell. They hold the whole tree: pressing TAB starts no program. */
import type { Command, Option } from 'commander'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** A command as a shell completes it. */
interface Place {
  /** Words that lead there: `token create`; empty for the program. */
  readonly path: readonly string[]
  readonly command: Command
}

/** A script for a shell, made of the command tree. */
export function completionScript(program: Command, shell: Shell): string {
  const places = placesBelow(program, [])
  if (shell === 'fish') return fish(program, places)
  const script = bash(program, places)
  // zsh has bash's completion interface as a module of its own (zshcompsys(1), "bashcompinit").
  return shell === 'zsh' ? `autoload -U +X compinit bashcompinit\ncompinit -i\nbashcompinit\n${script}` : script
}

function placesBelow(command: Command, path: readonly string[]): readonly Place[] {
  const below = command.commands.flatMap((one) => placesBelow(one, [...path, one.name()]))
  return [{ path, command }, ...below]
}

function optionsOf(program: Command, { command }: Place): readonly Option[] {
  return command === program ? program.options : [...command.options, ...program.options]
}

function flagsOf(option: Option): readonly string[] {
  return [option.long, option.short].filter((flag) => flag !== undefined && flag !== null)
}

/** What may stand at a place: commands below it, values of its argument, options. */
function wordsAt(program: Command, place: Place): readonly string[] {
  const values = place.command.registeredArguments.flatMap((argument) => argument.argChoices ?? [])
  const below = place.command.commands.map((one) => one.name())
  return [...below, ...values, ...optionsOf(program, place).flatMap(flagsOf), '--help']
}

function bash(program: Command, places: readonly Place[]): string {
  const known = places.filter(({ path }) => path.length > 0).map(({ path }) => quoted(` ${path.join(' ')}`))
  const words = places.map(
    (place) => `    ${quoted(key(place))}) words=${quoted(wordsAt(program, place).join(' '))} ;;`,
  )
  const values = places.flatMap((place) =>
    optionsOf(program, place)
      .filter(({ argChoices }) => argChoices !== undefined)
      .map(
        (option) =>
          `    ${flagsOf(option)
            .map((flag) => quoted(`${key(place)} ${flag}`))
            .join('|')}) words=${quoted((option.argChoices ?? []).join(' '))} ;;`,
      ),
  )
  return `# Completion of paddock, made by \`paddock completion\`.
_paddock() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" at='' words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${known.join('|')}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at" in
${words.join('\n')}
  esac
  case "$at $prev" in
${values.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur")) || true
}
complete -o default -F _paddock paddock ./paddock
`
}

function fish(program: Command, places: readonly Place[]): string {
  const lines = places.flatMap((place) => {
    const { path, command } = place
    const here =
      path.length === 0
        ? '__fish_use_subcommand'
        : path.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ')
    const below = command.commands.map(
      (one) =>
        `complete -c paddock -f -n ${fishQuoted(here)} -a ${one.name()} -d ${fishQuoted(firstLine(one.description()))}`,
    )
    const choices = command.registeredArguments.flatMap((argument) => argument.argChoices ?? [])
    const values =
      choices.length === 0 ? [] : [`complete -c paddock -f -n ${fishQuoted(here)} -a ${fishQuoted(choices.join(' '))}`]
    const options = command.options.map((option) => {
      const long = option.long === undefined || option.long === null ? '' : ` -l ${option.long.replace(/^--/, '')}`
      const short = option.short === undefined || option.short === null ? '' : ` -s ${option.short.replace(/^-/, '')}`
      const takes = option.required || option.optional ? ' -r' : ''
      const given = option.argChoices === undefined ? '' : ` -f -a ${fishQuoted(option.argChoices.join(' '))}`
      const where = command === program ? '' : ` -n ${fishQuoted(here)}`
      return `complete -c paddock${where}${long}${short}${takes}${given} -d ${fishQuoted(firstLine(option.description))}`
    })
    return [...below, ...values, ...options]
  })
  return `# Completion of paddock, made by \`paddock completion\`.\n${lines.join('\n')}\n`
}

function key({ path }: Place): string {
  return path.length === 0 ? '' : ` ${path.join(' ')}`
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? ''
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`
}
