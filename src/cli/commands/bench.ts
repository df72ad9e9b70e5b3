import type { Command } from 'commander'
import { type Cli, wholeNumber } from '../cli.ts'
import { exitCode } from '../exit.ts'

/** `paddock bench …`: what things cost on this machine, each beside its floor from the same run. */
export function addBench(program: Command, cli: Cli): void {
  const bench = program
    .command('bench')
    .description('measure what things cost on this machine')
    .addHelpText('after', '\nExample:\n  $ paddock bench box')
  bench
    .command('box')
    .description(
      'boxes: commands, starts and the model path, beside the Docker API, an attached shell and a bare container',
    )
    .option('--rounds <n>', 'commands that are measured', wholeNumber(20), 200)
    .addHelpText('after', '\nExample:\n  $ paddock bench box --rounds 500      takes about half a minute')
    .action(async (options: { readonly rounds: number }, command: Command) =>
      cli.run(command, {}, async (context) => {
        const { benchBox, describeFigure } = await import('../bench/box.ts')
        const figures = await benchBox(options.rounds)
        context.result(figures, () =>
          Object.entries(figures)
            .map(([name, value]) => `${name.padEnd(20)} ${describeFigure(value)}`)
            .join('\n'),
        )
        return exitCode.ok
      }),
    )
}
