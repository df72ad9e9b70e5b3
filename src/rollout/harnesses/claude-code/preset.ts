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

const ownVersion = '2.1.329'
/** The program itself, without its npm wrapper: a glibc binary. */
const packageName = `@anthropic-ai/claude-code-linux-${process.arch}`

const failurePatterns: readonly FailurePattern[] = [
  { pattern: /"subtype":"error_max_turns"/, end: 'horizon', fault: 'limit', detail: 'its turn limit' },
  { pattern: /"subtype":"error_max_budget_usd"/, end: 'horizon', fault: 'limit', detail: 'its own budget' },
  {
    pattern: /prompt is too long|exceed context limit/i,
    end: 'context_overflow',
    fault: 'context_overflow',
    detail: 'context overflow',
  },
  ...apiFailures,
]

/**
 * Claude Code, unmodified, fetched from npm into a read-only volume when it is first used; its licence is Anthropic's own.
 * Flags and variables as in its documentation of print mode (version 2.1): one JSON object on stdout. Every model alias
 * is mapped to the one that is trained. Needs an image with glibc.
 */
export function claudeCode({ version = ownVersion }: PinnedVersion = {}): BoxHarness {
  return defineHarness({
    name: 'claude-code',
    apiVersion: 1,
    version,
    dialect: 'messages',
    place: 'box',
    listsTools: true,
    bundle: npmBundle({ name: 'claude-code', package: packageName, version, node: false, executables: ['claude'] }),
    ...(version === ownVersion
      ? {
          resumes: {
            stale: ['sessions'],
            transcript: { directory: 'projects', holds: (id: string) => `"tool_use_id":"${id}"` },
            configure: (context: LaunchContext) => launch(context, ['--continue']),
          },
        }
      : {}),
    configure: (context) => launch(context, []),
    parseResult,
  })
}

function launch(
  { origin, apiKey, model, bundlePath, home, mcp, prompt, systemPrompt }: LaunchContext,
  more: readonly string[],
): HarnessLaunch {
  return {
    command: [
      `${bundlePath ?? ''}/node_modules/${packageName}/claude`,
      '--print',
      ...more,
      '--output-format',
      'json',
      '--dangerously-skip-permissions',
      '--model',
      model,
      ...(mcp === null ? [] : ['--strict-mcp-config', '--mcp-config', mcpConfig(mcp)]),
      ...(systemPrompt === null ? [] : ['--append-system-prompt', systemPrompt]),
      '--',
      prompt,
    ],
    env: {
      ANTHROPIC_BASE_URL: origin,
      ANTHROPIC_API_KEY: apiKey,
      ANTHROPIC_DEFAULT_OPUS_MODEL: model,
      ANTHROPIC_DEFAULT_SONNET_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_SUBAGENT_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      CLAUDE_CONFIG_DIR: home,
      DISABLE_AUTOUPDATER: '1',
      // Else it shows the model tools of MCP only once that has searched for them, and the tools of the task are some.
      ENABLE_TOOL_SEARCH: 'false',
      // Without it the program refuses to skip permissions as root.
      IS_SANDBOX: '1',
      NO_COLOR: '1',
    },
    files: [],
    stdin: null,
  }
}

function mcpConfig(mcp: { readonly name: string; readonly url: string }): string {
  return JSON.stringify({ mcpServers: { [mcp.name]: { type: 'http', url: mcp.url } } })
}

const resultMessage = z.looseObject({
  type: z.literal('result'),
  is_error: z.boolean().default(false),
  result: z.string().nullish(),
})

function parseResult(exit: HarnessExit): HarnessReport {
  const result = lastResult(exit.stdout)
  const report = reportExit(exit, failurePatterns, result?.result ?? null)
  if (report.end !== 'completed' || result?.is_error !== true) return report
  const failed = reportExit({ ...exit, exitCode: null }, failurePatterns, report.answer)
  return { ...failed, detail: `it reported an error and left with exit 0: ${(result.result ?? '').slice(0, 300)}` }
}

/** Null when the output is not what a run to the end prints. */
function lastResult(stdout: string): z.infer<typeof resultMessage> | null {
  try {
    return resultMessage.parse(JSON.parse(stdout))
  } catch {
    return null
  }
}
