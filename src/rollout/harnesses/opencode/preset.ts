import { z } from 'zod'
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
import { npmBundle } from '../npm-bundle.ts'

const ownVersion = '1.18.33'
/** The program itself, without its npm wrapper: a glibc binary. */
const packageName = `opencode-linux-${process.arch}`
const program = 'bin/opencode'
const instructionsFile = 'paddock-instructions.md'

/**
 * opencode, unmodified, fetched from npm into a read-only volume. Flags and configuration as in its documentation of `run`
 * and of its configuration file (version 1.18): JSON lines on stdout. The prompt goes to stdin, because an argument with
 * spaces is put into quotes on its way to the model. It asks for a title of the session at once, without tools. Needs an
 * image with glibc.
 */
export function opencode({ version = ownVersion }: PinnedVersion = {}): BoxHarness {
  return defineHarness({
    name: 'opencode',
    apiVersion: 1,
    version,
    dialect: 'chat',
    ...(version === ownVersion ? { replays: true } : {}),
    place: 'box',
    listsTools: true,
    bundle: npmBundle({ name: 'opencode', package: packageName, version, node: false, executables: [program] }),
    ...(version === ownVersion
      ? { resumes: { stale: ['.local/state/opencode/locks'], configure: (context) => launch(context, ['--continue']) } }
      : {}),
    configure: (context) => launch(context, []),
    parseResult,
  })
}

function launch(context: LaunchContext, more: readonly string[]): HarnessLaunch {
  return {
    command: [
      `${context.bundlePath ?? ''}/node_modules/${packageName}/${program}`,
      'run',
      ...more,
      '--format',
      'json',
      '--pure',
      '--auto',
    ],
    env: {
      OPENCODE_CONFIG: `${context.home}/opencode.json`,
      // The catalogue of models would be fetched from its own site.
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_SHARE: '1',
      NO_COLOR: '1',
    },
    files: [
      { path: 'opencode.json', data: config(context) },
      ...(context.systemPrompt === null ? [] : [{ path: instructionsFile, data: context.systemPrompt }]),
    ],
    stdin: context.prompt,
  }
}

/** `permission: allow` asks nobody: the box is the sandbox. */
function config({ origin, apiKey, model, mcp, home, systemPrompt }: LaunchContext): string {
  return JSON.stringify({
    autoupdate: false,
    share: 'disabled',
    permission: 'allow',
    model: `paddock/${model}`,
    small_model: `paddock/${model}`,
    enabled_providers: ['paddock'],
    provider: {
      paddock: {
        npm: '@ai-sdk/openai-compatible',
        name: 'paddock',
        options: { baseURL: `${origin}/v1`, apiKey },
        models: { [model]: { name: model } },
      },
    },
    ...(systemPrompt === null ? {} : { instructions: [`${home}/${instructionsFile}`] }),
    ...(mcp === null ? {} : { mcp: { [mcp.name]: { type: 'remote', url: mcp.url, enabled: true, oauth: false } } }),
  })
}

const eventLine = z.looseObject({
  type: z.string(),
  part: z.looseObject({ text: z.string().optional() }).optional(),
  error: z.looseObject({ data: z.looseObject({ message: z.string().optional() }).optional() }).optional(),
})

function parseResult(exit: HarnessExit): HarnessReport {
  const events = exit.stdout.split('\n').flatMap((line) => readEvent(line))
  const answer = events.findLast(({ type }) => type === 'text')?.part?.text ?? null
  const error = events.findLast(({ type }) => type === 'error')?.error
  // Tool results are in its output too, and may speak of any error.
  const report = reportExit({ ...exit, stdout: JSON.stringify(error ?? '') }, apiFailures, answer)
  const said = error?.data?.message
  if (report.end === 'completed' || said === undefined) return report
  return { ...report, detail: `${report.detail}: ${said.slice(0, 300)}` }
}

function readEvent(line: string): z.infer<typeof eventLine>[] {
  try {
    return [eventLine.parse(JSON.parse(line))]
  } catch {
    return []
  }
}
