import { PaddockError, sha256 } from '../../../core/index.ts'
import type { BoxHarness, HarnessBundle, HarnessFacts, HarnessLaunch, LaunchContext } from '../contract.ts'
import { agentVariables, defineHarness, reportExit } from '../define.ts'
import { bundledPrograms } from '../npm-bundle.ts'

/** A command line as harness. */
export interface ShellOptions {
  readonly command: string
  /** Goes on with the conversation that `command` began: what it is asked then is what the user of the task says. Default: it cannot. */
  readonly again?: string
  /** Default `shell`. */
  readonly name?: string
  /** Default `chat`. */
  readonly dialect?: HarnessFacts['dialect']
  /** What brings its programs, which are on the `PATH` of the command. Default: the task's image has them. */
  readonly bundle?: HarnessBundle | null
  /** Further variables; `{origin}`, `{key}`, `{model}`, `{home}` and `{bundle}` in their values stand for the attempt's own. */
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Any command of the user's as harness, run by the shell of the task's box in the task's directory. It finds the base
 * URL, a placeholder key and the model in `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_MODEL` (`ANTHROPIC_BASE_URL` is
 * there too), the environment's tools as an MCP server in `PADDOCK_MCP_URL` where it has any, and what it is asked to do in
 * `PADDOCK_PROMPT` and on stdin. Of a task of several agents `PADDOCK_AGENT` names the one that it is, and `PADDOCK_AGENTS` tells where each
 * asks. Exit 0 means that it is done.
 *
 * @throws `HARNESS_INVALID` for a word in braces that stands for nothing
 */
export function shellHarness(o: ShellOptions): BoxHarness {
  const { command, again, bundle = null, env = {}, dialect = 'chat' } = o
  for (const [name, value] of Object.entries(env)) requireKnownWords(name, value)
  // A command alone keeps the version that it always had: runs are gone on with by it.
  const own = bundle === null && o.env === undefined && dialect === 'chat' && o.again === undefined
  const parts = [command, bundle?.name, bundle?.version, env, dialect]
  const version = own ? command : JSON.stringify(o.again === undefined ? parts : [...parts, o.again])
  return defineHarness({
    name: o.name ?? 'shell',
    apiVersion: 1,
    version: sha256(version).slice(0, 12),
    dialect,
    // The user's own, who knows; each request is checked.
    replays: true,
    place: 'box',
    bundle,
    configure: (context) => launch(command, env, context),
    ...(again === undefined ? {} : { again: { configure: (context) => launch(again, env, context) } }),
    parseResult: (exit) => reportExit(exit, [], null),
  })
}

function launch(command: string, env: Readonly<Record<string, string>>, context: LaunchContext): HarnessLaunch {
  const { origin, apiKey, model, mcp, prompt, bundlePath, agents } = context
  return {
    command: bundlePath === null ? command : `export PATH="${bundledPrograms(bundlePath)}:$PATH"\n${command}`,
    env: {
      OPENAI_BASE_URL: `${origin}/v1`,
      OPENAI_API_KEY: apiKey,
      OPENAI_MODEL: model,
      ANTHROPIC_BASE_URL: origin,
      ANTHROPIC_API_KEY: apiKey,
      PADDOCK_PROMPT: prompt,
      ...agentVariables(agents),
      ...(mcp === null ? {} : { PADDOCK_MCP_URL: mcp.url }),
      ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, filled(value, context)])),
    },
    files: [],
    stdin: prompt,
  }
}

const words: Readonly<Record<string, (context: LaunchContext) => string>> = {
  origin: ({ origin }) => origin,
  key: ({ apiKey }) => apiKey,
  model: ({ model }) => model,
  home: ({ home }) => home,
  bundle: ({ bundlePath }) => bundlePath ?? '',
}
// JSON has braces too: only a single word in them is one of ours.
const wordPattern = /\{([a-z]+)\}/g

function filled(value: string, context: LaunchContext): string {
  return value.replace(wordPattern, (whole, word: string) => words[word]?.(context) ?? whole)
}

function requireKnownWords(name: string, value: string): void {
  for (const [whole, word = ''] of value.matchAll(wordPattern)) {
    if (Object.hasOwn(words, word)) continue
    throw new PaddockError('HARNESS_INVALID', `The variable ${name} has ${whole}, which stands for nothing`, {
      fix: `Use one of ${Object.keys(words)
        .map((known) => `{${known}}`)
        .join(', ')}.`,
    })
  }
}
