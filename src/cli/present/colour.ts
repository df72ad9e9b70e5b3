import { styleText } from 'node:util'

/** What a piece of text means; colour is only ever an addition to words and marks. */
export type Tone = 'strong' | 'dim' | 'good' | 'bad' | 'warn' | 'name' | 'trained'

const formats: Readonly<Record<Tone, Parameters<typeof styleText>[0]>> = {
  strong: 'bold',
  dim: 'dim',
  good: 'green',
  bad: 'red',
  warn: 'yellow',
  name: 'cyan',
  trained: ['green', 'underline'],
}

/** Paints text, or leaves it as it is. */
export type Paint = (tone: Tone, text: string) => string

export function painter(colour: boolean): Paint {
  return colour ? (tone, text) => styleText(formats[tone], text, { validateStream: false }) : (_tone, text) => text
}

/** C0 but tab and new line, DEL, C1, line and paragraph separators, and the marks that turn text around. */
const unsafe = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu

/**
 * Makes text of models, harnesses, boxes and callers safe for one line of a terminal: control characters (new lines and escape sequences
 * among them) come out visible, so no name can begin a line of its own.
 */
export function printable(text: string): string {
  return text.replace(unsafe, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    const code = character.charCodeAt(0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
  })
}

/** The same for text that has lines: new lines and tabs stay. Indent or mark its lines, so that none passes for a line of the program. */
export function printableText(text: string): string {
  return text.replaceAll(/[^\n\t]+/g, printable)
}
