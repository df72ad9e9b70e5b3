/** The chat form has no error mark: the result of a failed tool that does not say so itself is made to. */
export function toolErrorText(text: string): string {
  if (/^\W*(tool_use_)?error\b/i.test(text)) return text
  return `Error: ${text === '' ? 'the tool failed' : text}`
}
