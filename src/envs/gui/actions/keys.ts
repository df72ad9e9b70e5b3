/**
 * One key as browsers (UI Events KeyboardEvent key and code values; the Windows virtual key code that CDP wants) and as X
 * (keysym of X11/keysymdef.h) know it.
 */
export interface Key {
  readonly key: string
  readonly code: string
  readonly keyCode: number
  /** What it types by itself; null for keys that type nothing. */
  readonly text: string | null
  readonly keysym: number
  /** Bit of CDP's `modifiers` (Input.dispatchKeyEvent), 0 for keys that are none. */
  readonly modifier: number
}

const named: readonly (readonly [names: string, key: string, code: string, keyCode: number, keysym: number])[] = [
  ['enter return kp_enter', 'Enter', 'Enter', 13, 0xff0d],
  ['tab', 'Tab', 'Tab', 9, 0xff09],
  ['escape esc', 'Escape', 'Escape', 27, 0xff1b],
  ['backspace', 'Backspace', 'Backspace', 8, 0xff08],
  ['delete del', 'Delete', 'Delete', 46, 0xffff],
  ['insert ins', 'Insert', 'Insert', 45, 0xff63],
  ['home', 'Home', 'Home', 36, 0xff50],
  ['end', 'End', 'End', 35, 0xff57],
  ['pageup page_up prior pgup', 'PageUp', 'PageUp', 33, 0xff55],
  ['pagedown page_down next pgdn', 'PageDown', 'PageDown', 34, 0xff56],
  ['left arrowleft', 'ArrowLeft', 'ArrowLeft', 37, 0xff51],
  ['up arrowup', 'ArrowUp', 'ArrowUp', 38, 0xff52],
  ['right arrowright', 'ArrowRight', 'ArrowRight', 39, 0xff53],
  ['down arrowdown', 'ArrowDown', 'ArrowDown', 40, 0xff54],
  ['menu contextmenu', 'ContextMenu', 'ContextMenu', 93, 0xff67],
  ['capslock caps_lock', 'CapsLock', 'CapsLock', 20, 0xffe5],
]
const modifiers: readonly (readonly [
  names: string,
  key: string,
  code: string,
  keyCode: number,
  keysym: number,
  bit: number,
])[] = [
  ['alt alt_l option', 'Alt', 'AltLeft', 18, 0xffe9, 1],
  ['ctrl control control_l', 'Control', 'ControlLeft', 17, 0xffe3, 2],
  ['meta super super_l cmd command win', 'Meta', 'MetaLeft', 91, 0xffeb, 4],
  ['shift shift_l', 'Shift', 'ShiftLeft', 16, 0xffe1, 8],
]
/** Signs by the names that xdotool and models use for them. */
const signs: Readonly<Record<string, string>> = {
  space: ' ',
  plus: '+',
  minus: '-',
  comma: ',',
  period: '.',
  slash: '/',
  backslash: '\\',
  semicolon: ';',
  apostrophe: "'",
  equal: '=',
  bracketleft: '[',
  bracketright: ']',
  grave: '`',
}
/** Unshifted and shifted signs of each key of the US layout, with code and virtual key code. */
const layout: readonly (readonly [signs: string, code: string, keyCode: number])[] = [
  ['`~', 'Backquote', 192],
  ['-_', 'Minus', 189],
  ['=+', 'Equal', 187],
  ['[{', 'BracketLeft', 219],
  [']}', 'BracketRight', 221],
  ['\\|', 'Backslash', 220],
  [';:', 'Semicolon', 186],
  ['\'"', 'Quote', 222],
  [',<', 'Comma', 188],
  ['.>', 'Period', 190],
  ['/?', 'Slash', 191],
  ['  ', 'Space', 32],
  ...Array.from('0123456789', (digit, at) => [digit + (')!@#$%^&*('[at] ?? ''), `Digit${digit}`, 48 + at] as const),
  ...Array.from(
    'abcdefghijklmnopqrstuvwxyz',
    (letter, at) => [letter + letter.toUpperCase(), `Key${letter.toUpperCase()}`, 65 + at] as const,
  ),
]

const byName = new Map<string, Key>()
for (const [names, key, code, keyCode, keysym] of named) {
  const text = key === 'Enter' ? '\r' : null
  for (const name of names.split(' ')) byName.set(name, { key, code, keyCode, text, keysym, modifier: 0 })
}
for (const [names, key, code, keyCode, keysym, modifier] of modifiers) {
  for (const name of names.split(' ')) byName.set(name, { key, code, keyCode, text: null, keysym, modifier })
}
for (let n = 1; n <= 12; n += 1) {
  const key = `F${n}`
  byName.set(key.toLowerCase(), { key, code: key, keyCode: 111 + n, text: null, keysym: 0xffbd + n, modifier: 0 })
}
const bySign = new Map<string, Key>()
for (const [pair, code, keyCode] of layout) {
  for (const sign of pair) {
    bySign.set(sign, { key: sign, code, keyCode, text: sign, keysym: sign.charCodeAt(0), modifier: 0 })
  }
}

/** The key that types this one character on a US keyboard; null for characters that no key types. */
export function keyOfCharacter(character: string): Key | null {
  if (character === '\n' || character === '\r') return byName.get('enter') ?? null
  if (character === '\t') return byName.get('tab') ?? null
  return bySign.get(character) ?? null
}

/** The key of a name as xdotool, browsers or models write it (`Return`, `ctrl`, `ArrowUp`, `a`); null when unknown. */
export function keyOfName(name: string): Key | null {
  if (bySign.has(name)) return bySign.get(name) ?? null
  const lower = name.toLowerCase()
  return byName.get(lower) ?? bySign.get(signs[lower] ?? '') ?? null
}

/**
 * The keys of a combination such as `ctrl+shift+t`, in the order in which they go down; null with an unknown or empty
 * part. A plus sign by itself is the key `+`.
 */
export function keysOfCombination(text: string): readonly Key[] | null {
  const names = text === '+' ? ['+'] : text.replace(/\+\+$/, '+plus').split('+')
  const keys = names.map((name) =>
    keyOfName(name.trim() === '' && name !== ' ' ? '' : name.length > 1 ? name.trim() : name),
  )
  return keys.every((key) => key !== null) ? keys : null
}
