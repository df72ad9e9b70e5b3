import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type {
  BoxHarness,
  HarnessExit,
  HarnessLaunch,
  HarnessReport,
  LaunchContext,
  PinnedVersion,
} from '../contract.ts'
import { defineHarness, reportExit } from '../define.ts'
import { apiFailures } from '../failures.ts'
import { nodeCommand, npmBundle } from '../npm-bundle.ts'

const packageName = '@earendil-works/pi-coding-agent'
const ownVersion = '0.87.1'

/**
 * pi, unmodified, fetched from npm into a read-only volume. Flags, variables and `models.json` as in the documentation in
 * its package (version 0.87): JSON lines on stdout. The prompt goes to stdin, where an `@` at its head names no file. It
 * leaves with exit 0 also when the model's server refused it, so its own last message decides. It knows no MCP: tasks
 * whose tools are offered over MCP are refused.
 */
export function piHarness({ version = ownVersion }: PinnedVersion = {}): BoxHarness {
  return defineHarness({
    name: 'pi',
    apiVersion: 1,
    version,
    dialect: 'chat',
    ...(version === ownVersion ? { replays: true } : {}),
    place: 'box',
    bundle: npmBundle({ name: 'pi', package: packageName, version }),
    ...(version === ownVersion
      ? { resumes: { stale: [], configure: (context) => launch(context, ['--continue']) } }
      : {}),
    configure: (context) => launch(context, []),
    parseResult,
  })

  function launch(context: LaunchContext, more: readonly string[]): HarnessLaunch {
    if (context.mcp !== null) {
      throw new PaddockError('HARNESS_INVALID', `pi ${version} cannot use the tools of ${context.mcp.name}: no MCP`, {
        fix: 'Use a harness that speaks MCP, such as qwen-code or opencode.',
      })
    }
    const { systemPrompt } = context
    return {
      command: [
        ...nodeCommand({ bundlePath: context.bundlePath ?? '', package: packageName, script: 'dist/bundle/cli.js' }),
        '--print',
        '--mode',
        'json',
        '--offline',
        '--approve',
        '--provider',
        'paddock',
        '--model',
        context.model,
        ...more,
        ...(systemPrompt === null ? [] : ['--append-system-prompt', systemPrompt]),
      ],
      env: {
        PI_CODING_AGENT_DIR: context.home,
        PI_OFFLINE: '1',
        PI_SKIP_VERSION_CHECK: '1',
        PI_TELEMETRY: '0',
        NO_COLOR: '1',
      },
      files: [{ path: 'models.json', data: models(context) }],
      stdin: context.prompt,
    }
  }
}

function models({ origin, apiKey, model }: LaunchContext): string {
  const provider = { baseUrl: `${origin}/v1`, api: 'openai-completions', apiKey, models: [{ id: model }] }
  return JSON.stringify({ providers: { paddock: provider } })
}

const turnEnd = z.looseObject({
  type: z.literal('turn_end'),
  message: z.looseObject({
    stopReason: z.string().optional(),
    errorMessage: z.string().optional(),
    content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })).default([]),
  }),
})

function parseResult(exit: HarnessExit): HarnessReport {
  const last = lastTurn(exit.stdout)
  const answer = last?.content.findLast(({ type }) => type === 'text')?.text ?? null
  const report = reportExit(exit, apiFailures, answer)
  if (report.end !== 'completed' || last?.stopReason !== 'error') return report
  const said = last.errorMessage ?? ''
  // Only its last words count: an error that it retried is in its output too.
  const failed = reportExit({ ...exit, exitCode: null, stdout: said, stderr: '' }, apiFailures, null)
  return { ...failed, detail: `${failed.detail}: it reported an error and left with exit 0: ${said.slice(0, 300)}` }
}

/** Null when the output is not what a run to the end prints. */
function lastTurn(stdout: string): z.infer<typeof turnEnd>['message'] | null {
  const line = stdout.split('\n').findLast((one) => one.startsWith('{"type":"turn_end"'))
  try {
    return line === undefined ? null : turnEnd.parse(JSON.parse(line)).message
  } catch {
    return null
  }
}
