import { z } from 'zod'
import type { BoxHarness, FailurePattern, HarnessExit, HarnessReport, PinnedVersion } from '../contract.ts'
import { defineHarness, reportExit } from '../define.ts'
import { apiFailures } from '../failures.ts'
import { nodeCommand, npmBundle } from '../npm-bundle.ts'

const packageName = '@qwen-code/qwen-code'
const ownVersion = '0.24.4'
const settingsFile = 'qwen-settings.json'

// Its shell parser (tree-sitter-bash.wasm) has one function for which V8's optimising compiler takes 1.9 GB and some
// seconds; with the baseline compiler alone a run stays below 300 MB. Measured with 0.24.4 on Node 24.21.
const nodeFlags = ['--liftoff-only']

/** A tool has its own limit; this one only keeps the client from giving up before it. */
const toolTimeoutMs = 30 * 60_000
/** The most that it takes (0.24.4). By itself it goes on without the tools after five seconds, which a busy machine needs. */
const discoveryTimeoutMs = 5 * 60_000

/** Nothing may be sent but model calls, and nothing may be fetched. */
const settings = {
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  general: { enableAutoUpdate: false, disableAutoUpdate: true },
}

// Seen with 0.24.4: exit 53 after --max-session-turns, exit 55 after its wall-clock or tool-call limit.
const failurePatterns: readonly FailurePattern[] = [
  {
    pattern: /FatalTurnLimitedError|Reached max session turns/,
    end: 'horizon',
    fault: 'limit',
    detail: 'its turn limit',
  },
  { pattern: /FatalBudgetExceeded|budget exceeded/i, end: 'horizon', fault: 'limit', detail: 'its own budget' },
  {
    pattern: /maximum context length|CONTEXT_OVERFLOW/i,
    end: 'context_overflow',
    fault: 'context_overflow',
    detail: 'context overflow',
  },
  ...apiFailures,
]

/**
 * Qwen Code, unmodified, fetched from npm into a read-only volume. Flags and variables as in its documentation of headless
 * mode (version 0.24): one JSON array of messages on stdout, the last of type `result`.
 */
export function qwenCode({ version = ownVersion }: PinnedVersion = {}): BoxHarness {
  return defineHarness({
    name: 'qwen-code',
    apiVersion: 1,
    version,
    dialect: 'chat',
    ...(version === ownVersion ? { replays: true } : {}),
    place: 'box',
    listsTools: true,
    bundle: npmBundle({
      name: 'qwen-code',
      package: packageName,
      version,
      files: { [settingsFile]: `${JSON.stringify(settings, null, 2)}\n` },
      executables: [`vendor/ripgrep/${process.arch}-linux/rg`],
    }),
    configure: ({ origin, apiKey, model, mcp, bundlePath, prompt, systemPrompt }) => ({
      command: [
        ...nodeCommand({ bundlePath: bundlePath ?? '', package: packageName, script: 'cli.js', flags: nodeFlags }),
        '--auth-type',
        'openai',
        '--yolo',
        '--output-format',
        'json',
        ...(systemPrompt === null ? [] : ['--append-system-prompt', systemPrompt]),
        prompt,
      ],
      env: {
        OPENAI_BASE_URL: `${origin}/v1`,
        OPENAI_API_KEY: apiKey,
        OPENAI_MODEL: model,
        QWEN_CODE_SYSTEM_SETTINGS_PATH: `${bundlePath ?? ''}/${settingsFile}`,
        QWEN_USAGE_STATISTICS_ENABLED: 'false',
        QWEN_CODE_DISABLE_PRECONNECT: '1',
        NO_COLOR: '1',
      },
      files: mcp === null ? [] : [{ path: '.qwen/settings.json', data: mcpSettings(mcp) }],
      stdin: null,
    }),
    parseResult,
  })
}

/**
 * Its own documentation, users/features/mcp: `httpUrl` is streamable HTTP, `trust` asks nobody before a call. Without
 * `alwaysLoadTools` (0.24) the tools would only be found by a search of the model's. By itself it takes from the model's
 * name whether pictures can be sent, and puts words in their place where it does not know the name.
 */
function mcpSettings({ name, url }: { readonly name: string; readonly url: string }): string {
  const server = { httpUrl: url, trust: true, alwaysLoadTools: true, timeout: toolTimeoutMs, discoveryTimeoutMs }
  const model = { generationConfig: { modalities: { image: true } } }
  return `${JSON.stringify({ mcpServers: { [name]: server }, model }, null, 2)}\n`
}

const messages = z.array(z.looseObject({ type: z.string() }))
const resultMessage = z.looseObject({ is_error: z.boolean().default(false), result: z.string().nullish() })

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
    const last = messages.parse(JSON.parse(stdout)).at(-1)
    return last?.type === 'result' ? resultMessage.parse(last) : null
  } catch {
    return null
  }
}
