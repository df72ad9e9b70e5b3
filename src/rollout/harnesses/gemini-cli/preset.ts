import { z } from 'zod'
import type { BoxHarness, FailurePattern, HarnessExit, HarnessReport, PinnedVersion } from '../contract.ts'
import { defineHarness, reportExit } from '../define.ts'
import { apiFailures } from '../failures.ts'
import { nodeCommand, npmBundle } from '../npm-bundle.ts'

const packageName = '@google/gemini-cli'
const ownVersion = '0.61.0'

/** Nothing may be sent but model calls, and nothing may be fetched. */
const settings = {
  security: { auth: { selectedType: 'gemini-api-key' } },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  general: { enableAutoUpdate: false, disableAutoUpdate: true },
}

const failurePatterns: readonly FailurePattern[] = [
  {
    pattern: /FatalTurnLimitedError|Reached max session turns/,
    end: 'horizon',
    fault: 'limit',
    detail: 'its turn limit',
  },
  {
    pattern: /input token count .* exceeds the maximum/i,
    end: 'context_overflow',
    fault: 'context_overflow',
    detail: 'context overflow',
  },
  ...apiFailures,
]

/**
 * Gemini CLI, unmodified, fetched from npm into a read-only volume. Flags and settings as in its documentation of
 * headless mode (version 0.61): one JSON object on stdout.
 */
export function geminiCli({ version = ownVersion }: PinnedVersion = {}): BoxHarness {
  return defineHarness({
    name: 'gemini-cli',
    apiVersion: 1,
    version,
    dialect: 'gemini',
    place: 'box',
    listsTools: true,
    bundle: npmBundle({ name: 'gemini-cli', package: packageName, version }),
    configure: ({ origin, apiKey, model, bundlePath, home, mcp, prompt, systemPrompt }) => ({
      command: [
        ...nodeCommand({ bundlePath: bundlePath ?? '', package: packageName, script: 'bundle/gemini.js' }),
        '--model',
        model,
        '--output-format',
        'json',
        '--yolo',
        '--skip-trust',
        '--prompt',
        prompt,
      ],
      env: {
        // Plain HTTP is taken from the loopback only, which the model path in a box is.
        GOOGLE_GEMINI_BASE_URL: origin,
        GEMINI_API_KEY: apiKey,
        GEMINI_CLI_HOME: home,
        NO_COLOR: '1',
      },
      files: [
        {
          path: '.gemini/settings.json',
          data: JSON.stringify({
            ...settings,
            ...(mcp === null ? {} : { mcpServers: { [mcp.name]: { httpUrl: mcp.url, trust: true } } }),
          }),
        },
        // Its global memory, which it appends to its own system prompt.
        ...(systemPrompt === null ? [] : [{ path: '.gemini/GEMINI.md', data: systemPrompt }]),
      ],
      stdin: null,
    }),
    parseResult,
  })
}

const resultMessage = z.looseObject({ response: z.string().nullish() })

function parseResult(exit: HarnessExit): HarnessReport {
  return reportExit(exit, failurePatterns, answerOf(exit.stdout))
}

/** Null when the output is not what a run to the end prints. */
function answerOf(stdout: string): string | null {
  try {
    return resultMessage.parse(JSON.parse(stdout)).response ?? null
  } catch {
    return null
  }
}
