import { z } from 'zod'
import type { BoxHarness, HarnessExit, HarnessReport, LaunchContext, PinnedVersion } from '../contract.ts'
import { defineHarness, reportExit } from '../define.ts'
import { apiFailures } from '../failures.ts'
import { npmBundle } from '../npm-bundle.ts'

const ownVersion = '3.0.65'
/** The program itself, without its npm wrapper: a glibc binary. */
const packageName = `@cline/cli-linux-${process.arch}`
const program = 'bin/cline'

/** Nothing may be sent but model calls, and nothing may be fetched. */
const settings = { telemetryOptOut: true, autoUpdateEnabled: false }

/**
 * Cline's CLI, unmodified, fetched from npm into a read-only volume. Flags as in its own help, files as its `auth` and `mcp`
 * commands write them (version 3.0): JSON lines on stdout, the last of type `run_result`. Needs an image with glibc.
 */
export function cline({ version = ownVersion }: PinnedVersion = {}): BoxHarness {
  return defineHarness({
    name: 'cline',
    apiVersion: 1,
    version,
    ...(version === ownVersion ? { replays: true } : {}),
    dialect: 'chat',
    place: 'box',
    listsTools: true,
    bundle: npmBundle({ name: 'cline', package: packageName, version, node: false, executables: [program] }),
    configure: ({ bundlePath, home, prompt, systemPrompt, mcp, ...context }) => ({
      command: [
        `${bundlePath ?? ''}/node_modules/${packageName}/${program}`,
        '--json',
        '--auto-approve',
        'true',
        '--',
        prompt,
      ],
      env: {
        CLINE_GLOBAL_SETTINGS_PATH: `${home}/cline-settings.json`,
        CLINE_PROVIDER_SETTINGS_PATH: `${home}/cline-providers.json`,
        CLINE_MCP_SETTINGS_PATH: `${home}/cline-mcp.json`,
        // Else a daemon is started that outlives the run.
        CLINE_SESSION_BACKEND_MODE: 'local',
        CLINE_NO_AUTO_UPDATE: '1',
        NO_COLOR: '1',
      },
      files: [
        { path: 'cline-settings.json', data: JSON.stringify(settings) },
        { path: 'cline-providers.json', data: providers(context) },
        { path: 'cline-mcp.json', data: mcpSettings(mcp) },
        ...(systemPrompt === null ? [] : [{ path: '.cline/rules/paddock.md', data: systemPrompt }]),
      ],
      stdin: null,
    }),
    parseResult,
  })
}

function providers({ origin, apiKey, model }: Pick<LaunchContext, 'origin' | 'apiKey' | 'model'>): string {
  const provider = 'openai-compatible'
  const entry = {
    settings: { provider, apiKey, model, baseUrl: `${origin}/v1` },
    updatedAt: '2026-01-01T00:00:00.000Z',
    tokenSource: 'manual',
  }
  return JSON.stringify({ version: 1, lastUsedProvider: provider, modes: {}, providers: { [provider]: entry } })
}

function mcpSettings(mcp: LaunchContext['mcp']): string {
  const servers = mcp === null ? {} : { [mcp.name]: { transport: { type: 'streamableHttp', url: mcp.url } } }
  return JSON.stringify({ mcpServers: servers })
}

const runResult = z.looseObject({
  type: z.literal('run_result'),
  finishReason: z.string(),
  text: z.string().optional(),
})

function parseResult(exit: HarnessExit): HarnessReport {
  const result = lastResult(exit.stdout)
  const answer = result === null || result.finishReason === 'error' ? null : (result.text ?? null)
  // Tool results are in its output too, and may speak of any error.
  const report = reportExit({ ...exit, stdout: result?.text ?? '' }, apiFailures, answer)
  if (report.end === 'completed' || result?.text === undefined) return report
  return { ...report, detail: `${report.detail}: ${result.text.slice(0, 300)}` }
}

/** Null when the output is not what a run to the end prints. */
function lastResult(stdout: string): z.infer<typeof runResult> | null {
  const line = stdout.split('\n').findLast((one) => one.includes('"type":"run_result"'))
  try {
    return line === undefined ? null : runResult.parse(JSON.parse(line))
  } catch {
    return null
  }
}
