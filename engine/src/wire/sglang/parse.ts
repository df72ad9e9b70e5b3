import { answerParser, parseWhole } from '../../parsers/index.ts'
import { validationError } from '../../errors.ts'
import { readFlag, readList, readText } from '../../json/read.ts'
import { ThinkingParser } from '../../parsers/thinking.ts'
import { PlainText } from '../../parsers/forced-calls.ts'
import { failDerender } from '../begin.ts'
import type { Engine } from '../../engine.ts'
import type { Exchange } from '../../http/exchange.ts'

/**
 * `POST /parse_function_call`: text to calls by a named parser (SGLang `srt/entrypoints/http_server.py`
 * `parse_function_call_request`, `io_struct.py` ParseFunctionCallReq). A call's `parameters` is JSON text.
 */
export async function parseFunctionCall(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  failDerender(exchange, engine, body)
  const text = readText(body, 'text')
  if (text === undefined) throw validationError('Field required', 'text')
  knownParser(readText(body, 'tool_call_parser'), engine.profile.parsers.tool)
  const kind = (readList(body, 'tools') ?? []).length > 0 ? 'auto' : 'none'
  const { thinks: _thinks, ...profile } = engine.profile
  const answer = parseWhole(answerParser({ ...profile, thinks: false }, { kind }, false), text)
  exchange.json({
    normal_text: answer.content ?? '',
    calls: answer.calls.map((call, at) => ({ tool_index: at, name: call.name, parameters: call.arguments })),
  })
}

/** `POST /separate_reasoning` (`io_struct.py` SeparateReasoningReqInput); `force_reasoning`: the prompt opened it. */
export async function separateReasoning(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  failDerender(exchange, engine, body)
  const text = readText(body, 'text')
  if (text === undefined) throw validationError('Field required', 'text')
  knownParser(readText(body, 'reasoning_parser'), engine.profile.parsers.reasoning)
  const parser = new ThinkingParser(new PlainText(), readFlag(body, 'force_reasoning') ?? false)
  const answer = parseWhole(parser, text)
  exchange.json({ reasoning_text: answer.reasoning ?? '', text: answer.content ?? '' })
}

function knownParser(asked: string | undefined, known: string | null): void {
  if (asked !== undefined && asked !== known) throw validationError(`Unsupported parser: ${asked}`, 'parser')
}
