// The Claude Agent SDK: Claude Code as a library, with its own shell.
import { query } from '@anthropic-ai/claude-agent-sdk'

const { ROOT, KEY, MODEL, PROMPT, HOME } = process.env
const answer = query({
  prompt: PROMPT,
  options: {
    model: MODEL,
    cwd: HOME,
    allowedTools: ['Bash'],
    settingSources: [],
    includePartialMessages: true,
    env: {
      ...process.env,
      ANTHROPIC_BASE_URL: ROOT,
      ANTHROPIC_API_KEY: KEY,
      DISABLE_TELEMETRY: '1',
      DISABLE_AUTOUPDATER: '1',
    },
  },
})
for await (const message of answer) {
  if (message.type === 'result') process.stdout.write(message.subtype === 'success' ? message.result : message.subtype)
}
