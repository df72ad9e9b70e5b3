import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { type Finding, ok } from '../doctor/finding.ts'
import { exitCode } from '../exit.ts'
import type { Paint } from '../present/colour.ts'
import { plural } from '../present/units.ts'
import { sandboxOf } from '../sandbox.ts'

/** `paddock doctor`: what this machine and engine can do, and what to mend. Exit code 1 when something is broken. */
export function addDoctor(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .description('look at Node, disk, limits, Docker and the engine; every finding comes with its fix')
    .option('--no-engine', 'do not probe the engine')
    .option('--no-docker', 'do not probe Docker')
    .addHelpText('after', '\nExample:\n  $ ENGINE_URL=http://127.0.0.1:8000 paddock doctor')
    .action(async (options: { readonly engine: boolean; readonly docker: boolean }, command: Command) =>
      cli.run(command, {}, async (context) => {
        const { dockerFindings } = await import('../doctor/docker.ts')
        const { machineFindings } = await import('../doctor/machine.ts')
        const { config } = context.loaded
        const findings: Finding[] = [
          ok('config', 'defaults and environment variables: doctor reads no configuration file'),
          ...(await machineFindings(config)),
        ]
        if (options.docker) {
          const sandbox = await sandboxOf(config)
          try {
            findings.push(...(await dockerFindings(sandbox)))
          } finally {
            await sandbox.close()
          }
        }
        if (options.engine) {
          const { engineFindings } = await import('../doctor/engine.ts')
          findings.push(...(await engineFindings(config, context.io.signal)))
        }
        context.result({ findings }, () => context.typed(asText(findings, context.paint)))
        return findings.some((finding) => finding.status === 'problem') ? exitCode.problems : exitCode.ok
      }),
    )
}

function asText(findings: readonly Finding[], paint: Paint): string {
  const lines = findings.map((finding) => {
    const about = finding.about.padEnd(10)
    switch (finding.status) {
      case 'ok':
        return `${paint('good', 'ok      ')} ${about} ${finding.what}`
      case 'warning':
        return `${paint('warn', 'warning ')} ${about} ${finding.what}. Fix: ${finding.fix}`
      case 'problem':
        return `${paint('bad', 'problem ')} ${about} ${finding.what}. Fix: ${finding.fix}`
    }
  })
  const problems = findings.filter((finding) => finding.status === 'problem').length
  const warnings = findings.filter((finding) => finding.status === 'warning').length
  return [...lines, `${plural(problems, 'problem')}, ${plural(warnings, 'warning')}`].join('\n')
}
