import { z } from 'zod'
import type {
  BoxHarness,
  FailurePattern,
  HarnessExit,
  HarnessLaunch,
  HarnessReport,
  LaunchContext,
  PinnedVersion,
} from '../contract.ts'
import { defineHarness, reportExit } from '../define.ts'
import { apiFailures } from '../failures.ts'
import { npmBundle } from '../npm-bundle.ts'

const ownVersion = '0.169.0'
/** The platform's package under a name of its own: npm publishes it as another version of the same package. */
const packageName = 'codex-program'

const triples: Readonly<Record<string, string>> = {
  x64: 'x86_64-unknown-linux-musl',
  arm64: 'aarch64-unknown-linux-musl',
}
const program = `vendor/${triples[process.arch] ?? process.arch}/bin/codex`

const failurePatterns: readonly FailurePattern[] = [
  {
    pattern: /context_length_exceeded|ran out of room in the model's context/i,
    end: 'context_overflow',
    fault: 'context_overflow',
    detail: 'context overflow',
  },
  ...apiFailures,
]

/**
 * Codex CLI, unmodified, fetched from npm into a read-only volume: one static binary. Configuration as in its
 * documentation of `exec` (version 0.169): JSON lines on stdout. The box is the sandbox, so its own is off.
 */
export function codex({ version = ownVersion }: PinnedVersion = {}): BoxHarness {
  return defineHarness({
    name: 'codex',
    apiVersion: 1,
    version,
    dialect: 'responses',
    place: 'box',
    listsTools: true,
    bundle: npmBundle({
      name: 'codex',
      package: packageName,
      version,
      spec: `${packageName}@npm:@openai/codex@${version}-linux-${process.arch}`,
      node: false,
      executables: [program],
    }),
    ...(version === ownVersion
      ? { resumes: { stale: ['thread-writer-locks'], configure: (context) => launch(context, ['resume', '--last']) } }
      : {}),
    configure: (context) => launch(context, []),
    parseResult,
  })
}

function launch(context: LaunchContext, more: readonly string[]): HarnessLaunch {
  return {
    command: [
      `${context.bundlePath ?? ''}/node_modules/${packageName}/${program}`,
      'exec',
      '--json',
      '--skip-git-repo-check',
      '--sandbox',
      'danger-full-access',
      ...more,
      '--',
      context.prompt,
    ],
    env: { CODEX_HOME: context.home, PADDOCK_MODEL_KEY: context.apiKey, NO_COLOR: '1' },
    files: [{ path: 'config.toml', data: config(context) }],
    stdin: null,
  }
}

/** Strings of TOML are written as JSON strings, which are a part of its syntax. */
function config({ origin, model, mcp, systemPrompt }: LaunchContext): string {
  const text = JSON.stringify
  const lines = [
    `model = ${text(model)}`,
    'model_provider = "paddock"',
    'check_for_update_on_startup = false',
    ...(systemPrompt === null ? [] : [`developer_instructions = ${text(systemPrompt)}`]),
    '[model_providers.paddock]',
    'name = "paddock"',
    `base_url = ${text(`${origin}/v1`)}`,
    'wire_api = "responses"',
    'env_key = "PADDOCK_MODEL_KEY"',
    ...(mcp === null ? [] : [`[mcp_servers.${text(mcp.name)}]`, `url = ${text(mcp.url)}`]),
  ]
  return `${lines.join('\n')}\n`
}

const eventLine = z.looseObject({
  type: z.string(),
  item: z.looseObject({ type: z.string(), text: z.string().optional() }).optional(),
  error: z.looseObject({ message: z.string() }).optional(),
})

function parseResult(exit: HarnessExit): HarnessReport {
  const events = exit.stdout.split('\n').flatMap((line) => readEvent(line))
  const answer = events.findLast(({ item }) => item?.type === 'agent_message')?.item?.text ?? null
  const report = reportExit(exit, failurePatterns, answer)
  const failed = events.findLast(({ type }) => type === 'turn.failed')
  if (report.end === 'completed' || report.end === 'context_overflow' || failed === undefined) return report
  return { ...report, detail: `${report.detail}: ${(failed.error?.message ?? '').slice(0, 300)}` }
}

function readEvent(line: string): z.infer<typeof eventLine>[] {
  try {
    return [eventLine.parse(JSON.parse(line))]
  } catch {
    return []
  }
}
