import type { WordCall } from './vocabulary.ts'

/**
 * A call in XML, as chat templates since Qwen3-Coder and those of Seed ask for it: `<function=name><parameter=key>text</parameter></function>`.
 * Arguments are texts, without the line ends around them. Null for what is not whole, and for a parameter that comes twice.
 */
export function xmlCall(call: string): WordCall | null {
  const [, name = '', body] = /^<function=(\w+)>\s*([^]*?)\s*<\/function>$/.exec(call) ?? []
  const parameter = /<parameter=(\w+)>\n?([^]*?)\n?<\/parameter>/g
  if (body === undefined || body.replace(parameter, '').trim() !== '') return null
  const given = Array.from(body.matchAll(parameter), ([, key = '', value = '']) => [key, value] as const)
  const args: Readonly<Record<string, string>> = Object.fromEntries(given)
  return Object.keys(args).length < given.length ? null : { name, args }
}
