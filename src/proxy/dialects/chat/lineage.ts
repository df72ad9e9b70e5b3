import type { IncomingHttpHeaders } from 'node:http'
import { type Lineage, sha256 } from '../../../core/index.ts'
import type { LooseObject } from '../../session/sampling.ts'

/**
 * What a request's headers and body tell of its place in the harness's own structure.
 * Header names: Claude Code (`x-claude-code-*`), Codex (`x-codex-turn-metadata`, `x-openai-subagent`), OpenCode
 * (`x-session-id`, `x-parent-session-id`), the OpenAI and Anthropic SDKs (`x-stainless-retry-count`).
 */
export function readLineage(headers: IncomingHttpHeaders, body: LooseObject, toolsText: Uint8Array | null): Lineage {
  const codex = jsonHeader(headers, 'x-codex-turn-metadata')
  const header = (name: string) => {
    const value = headers[name]
    return (Array.isArray(value) ? value[0] : value) ?? null
  }
  const tools = body['tools']
  const retryCount = Number(header('x-stainless-retry-count') ?? Number.NaN)
  return {
    nativeSession:
      header('x-claude-code-session-id') ?? text(codex['session_id']) ?? header('x-session-id') ?? header('session_id'),
    nativeAgent: header('x-claude-code-agent-id') ?? text(codex['thread_id']),
    nativeParent:
      header('x-claude-code-parent-agent-id') ??
      header('x-codex-parent-thread-id') ??
      text(codex['parent_thread_id']) ??
      header('x-parent-session-id'),
    requestKind:
      header('x-openai-subagent') ?? text(codex['subagent_kind']) ?? text(codex['request_kind']) ?? askedFor(body),
    toolsDigest: toolsText === null ? null : sha256(toolsText),
    toolCount: Array.isArray(tools) ? tools.length : 0,
    systemDigest: systemDigest(body['messages']),
    userAgent: header('user-agent'),
    modelAsked: text(body['model']),
    retryCount: Number.isInteger(retryCount) ? retryCount : null,
    idempotencyKey: header('idempotency-key'),
  }
}

/**
 * How system prompts begin that a program keeps for requests of its own, which have neither tools nor a header that says
 * so. Seen with opencode 1.18.33 (title and compaction of a session) and pi 0.87.1 (compaction).
 */
const ownPrompts: readonly (readonly [string, string])[] = [
  ['You are a title generator.', 'title'],
  ['You are a context summarization agent.', 'compact'],
  ['You are a context summarization assistant.', 'compact'],
]

function askedFor({ messages, tools }: LooseObject): string | null {
  const text = systemText(messages)
  if (text === null || (Array.isArray(tools) && tools.length > 0)) return null
  return ownPrompts.find(([words]) => text.startsWith(words))?.[1] ?? null
}

function systemDigest(messages: unknown): string | null {
  const text = systemText(messages)
  return text === null ? null : sha256(text)
}

/** Of the leading system or developer message; other than plain text as its JSON. */
function systemText(messages: unknown): string | null {
  if (!Array.isArray(messages)) return null
  const first: unknown = messages[0]
  if (typeof first !== 'object' || first === null || !('role' in first) || !('content' in first)) return null
  if (first.role !== 'system' && first.role !== 'developer') return null
  return typeof first.content === 'string' ? first.content : JSON.stringify(first.content)
}

function jsonHeader(headers: IncomingHttpHeaders, name: string): LooseObject {
  const value = headers[name]
  if (typeof value !== 'string') return {}
  try {
    const parsed: unknown = JSON.parse(value)
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  } catch {
    return {}
  }
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
