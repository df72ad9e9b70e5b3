import { Argument, type Command } from 'commander'
import type { Cli } from '../cli.ts'
import { completionScript, type Shell, shells } from '../completion.ts'

/** `paddock completion`: the shell's own completion of commands, options and their values. */
export function addCompletion(program: Command, cli: Cli): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(shells))
    .addHelpText(
      'after',
      `
Example:
  $ paddock completion bash > ~/.local/share/bash-completion/completions/paddock
  $ paddock completion zsh >> ~/.zshrc
  $ paddock completion fish > ~/.config/fish/completions/paddock.fish`,
    )
    // It reads neither configuration nor store.
    .action((shell: Shell) => cli.io.out(completionScript(program, shell).trimEnd()))
}
