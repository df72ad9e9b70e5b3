/** A fake judge behind real HTTP, and the rubric that its tests use. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { createJudge, type JudgeCase, type JudgeOptions, parseRubric } from './index.ts'

export const source = {
  name: 'right',
  version: '1',
  items: [{ name: 'right', text: 'The answer is right.' }],
  canaries: [
    { item: 'right', answer: 'GOOD canary', choice: 'yes' },
    { item: 'right', answer: 'BAD canary', choice: 'no' },
  ],
}
export const rubric = parseRubric(source, 'the test')
export const signal = new AbortController().signal

/** What the fake judge server is asked. */
export interface Question {
  readonly mark: string
  readonly user: string
  readonly seed: number
  /** The user message, and what follows it after a reply that could not be used. */
  readonly turns: number
  /** Choices in the order in which the prompt lists them. */
  readonly choices: readonly string[]
}

export const answer = (question: Question, choice: string, explanation = 'so it is') =>
  JSON.stringify({ mark: question.mark, explanation, choice })
/** A quotation is no part of the answer. */
export const unquoted = ({ user }: Question) => user.replaceAll(/^> .*$/gm, '')
export const truth = (question: Question) => (unquoted(question).includes('GOOD') ? 'yes' : 'no')

/** Null: the connection breaks. */
export type Reply = string | { readonly status: number } | { readonly cut: string } | null
export type Judge = (question: Question) => Reply | Promise<Reply>

/** An OpenAI-compatible server around a judge, until the end of the test, and a count of what it was asked. */
export async function judgeServer(judge: Judge) {
  const seen = { requests: 0, inFlight: 0, mostInFlight: 0 }
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    seen.requests += 1
    seen.inFlight += 1
    seen.mostInFlight = Math.max(seen.mostInFlight, seen.inFlight)
    const body = (await json(request)) as { seed: number; messages: { content: string }[] }
    const user = body.messages[1]?.content ?? ''
    const mark = /Reply with one JSON object.*"mark": "([0-9a-f]+)"/.exec(user)?.[1] ?? ''
    const choices = (/^Choices: (.*)$/m.exec(user)?.[1] ?? '').split(', ').map((word) => JSON.parse(word) as string)
    const reply = await judge({ mark, user, choices, seed: body.seed, turns: body.messages.length })
    seen.inFlight -= 1
    if (reply === null) return void response.destroy()
    if (typeof reply === 'object' && 'status' in reply) {
      response.writeHead(reply.status, { 'content-type': 'application/json', 'retry-after': '0' })
      return void response.end('{"error":{"message":"not now"}}')
    }
    const content = typeof reply === 'string' ? reply : reply.cut
    const finish = typeof reply === 'string' ? 'stop' : 'length'
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({
        choices: [{ message: { role: 'assistant', content }, finish_reason: finish }],
        usage: { total_tokens: 10 },
      }),
    )
  }
  const server = createServer((request, response) => void handle(request, response)).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const make = (options: Partial<JudgeOptions> = {}) =>
    createJudge({ baseUrl, apiKey: 'x', model: 'fake', rubric, backoffMs: 1, ...options })
  return { seen, make }
}

export const oneCase = (text: string): JudgeCase => ({ question: 'What is it?', answer: text, reference: null })
