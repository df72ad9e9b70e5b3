import type { Command } from 'commander'
import type { LoadedConfig } from '../../config/index.ts'
import type { PaddockError } from '../../core/index.ts'
import type { Cli, CommandContext } from '../cli.ts'
import { type Finding, ok, problem } from '../doctor/finding.ts'
import { exitCode } from '../exit.ts'
import type { Paint } from '../present/colour.ts'
import { plural } from '../present/units.ts'
import { sandboxOf } from '../sandbox.ts'

interface DoctorOptions {
  readonly engine: boolean
  readonly docker: boolean
}

/** `paddock doctor`: whether this machine can do what is configured, and what to mend. Exit code 1 when something is broken. */
export function addDoctor(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .description(
      'look at Node, disk, limits, Docker, the configuration and what it names; every finding comes with its fix',
    )
    .option('--no-engine', 'do not probe engines')
    .option('--no-docker', 'do not probe Docker')
    .addHelpText('after', '\nExample:\n  $ ENGINE_URL=http://127.0.0.1:8000 paddock doctor')
    .action(async (options: DoctorOptions, command: Command) =>
      cli.look(command, async (context, refused) => {
        const findings =
          refused === null ? await configuredFindings(context, options) : await refusedFindings(context, refused)
        context.result({ findings }, () => context.typed(asText(findings, context.paint)))
        return findings.some((finding) => finding.status === 'problem') ? exitCode.problems : exitCode.ok
      }),
    )
}

/** What `serve` would start with. */
async function configuredFindings({ loaded, io }: CommandContext, options: DoctorOptions): Promise<readonly Finding[]> {
  const { machineFindings, storeFindings } = await import('../doctor/machine.ts')
  const { config } = loaded
  const findings = [configFinding(loaded), ...(await machineFindings(config)), ...(await storeFindings(config))]
  if (options.docker) {
    const { dockerFindings } = await import('../doctor/docker.ts')
    const sandbox = await sandboxOf(config)
    try {
      findings.push(...(await dockerFindings(sandbox)))
    } finally {
      await sandbox.close()
    }
  }
  if (options.engine) {
    const { engineFindings } = await import('../doctor/engine.ts')
    findings.push(...(await engineFindings(config, io.signal)))
  }
  return findings
}

/** The machine alone: which store, engines and daemon are meant is not known. */
async function refusedFindings(
  { loaded }: CommandContext,
  { code, message, fix }: PaddockError,
): Promise<readonly Finding[]> {
  const { machineFindings } = await import('../doctor/machine.ts')
  const what = `${code}: ${message.replace(/\.$/, '')}; so data, Docker and engines were not looked at`
  return [problem('config', what, fix), ...(await machineFindings(loaded.config))]
}

function configFinding({ file }: LoadedConfig): Finding {
  return ok('config', file ?? 'defaults and environment variables: no configuration file is read')
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
