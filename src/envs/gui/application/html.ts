/** Markup that is safe to send: made by {@link html} only. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type HtmlPart = Html | string | number | false | null | readonly HtmlPart[]

/** Markup with its values escaped; `false` and `null` are left out, lists are joined. */
export function html(strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  return new Html(strings.map((fixed, at) => fixed + (at < parts.length ? render(parts[at] ?? null) : '')).join(''))
}

function render(part: HtmlPart): string {
  if (part === null || part === false) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map(render).join('')
  return String(part).replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
