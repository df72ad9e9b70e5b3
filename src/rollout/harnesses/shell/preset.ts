import { sha256 } from '../../../core/index.ts'
import type { BoxHarness } from '../contract.ts'
import { defineHarness, reportExit } from '../define.ts'

/**
 * Any command of the user's as harness, run by the shell of the task's box in the task's directory. It finds the base
 * URL, a placeholder key and the model in `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_MODEL` (`ANTHROPIC_BASE_URL` is
 * there too), the environment's tools as an MCP server in `PADDOCK_MCP_URL` where it has any, and what it is asked to do in
 * `PADDOCK_PROMPT` and on stdin. Exit 0 means that it is done.
 */
export function shellHarness(o: { readonly command: string }): BoxHarness {
  return defineHarness({
    name: 'shell',
    apiVersion: 1,
    version: sha256(o.command).slice(0, 12),
    dialect: 'chat',
    place: 'box',
    bundle: null,
    configure: ({ origin, apiKey, model, mcp, prompt }) => ({
      command: o.command,
      env: {
        OPENAI_BASE_URL: `${origin}/v1`,
        OPENAI_API_KEY: apiKey,
        OPENAI_MODEL: model,
        ANTHROPIC_BASE_URL: origin,
        ANTHROPIC_API_KEY: apiKey,
        PADDOCK_PROMPT: prompt,
        ...(mcp === null ? {} : { PADDOCK_MCP_URL: mcp.url }),
      },
      files: [],
      stdin: prompt,
    }),
    parseResult: (exit) => reportExit(exit, [], null),
  })
}
