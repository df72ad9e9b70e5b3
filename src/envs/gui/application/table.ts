import { type Html, html, type HtmlPart } from './html.ts'

/** A row that a target can look inside by its name: `row "Ada" > button "Edit"`. */
export interface NamedRow {
  readonly name: string
  readonly cells: readonly HtmlPart[]
}

/** A table of named rows; without heads it has none. */
export function table(heads: readonly HtmlPart[], rows: readonly NamedRow[]): Html {
  const top = html`<thead>
    <tr>
      ${heads.map((head) => html`<th>${head}</th>`)}
    </tr>
  </thead>`
  return html`<table>
    ${heads.length > 0 && top}
    <tbody>
      ${rows.map(
        ({ name, cells }) =>
          html`<tr aria-label="${name}">
            ${cells.map((cell) => html`<td>${cell}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`
}
