import { Html, html, type HtmlPart } from './html.ts'

/** Where a page's own mark is put in when it is sent. */
export const pageMark = '%%PAGE%%'

export interface PageParts {
  readonly title: string
  readonly body: HtmlPart
  /** Links of the bar at the top: text and path. */
  readonly bar?: readonly (readonly [text: string, path: string])[]
  /** JavaScript of the page. It sends changes with `post(op, fields)`, which reloads when they are made. */
  readonly script?: string
  readonly style?: string
}

const style = `*{box-sizing:border-box}body{font:15px/1.4 "Liberation Sans",sans-serif;margin:0;color:#1c2330;background:#f4f5f8}
header{background:#24406b;color:#fff;padding:10px 18px;display:flex;gap:18px;align-items:center}header b{font-size:18px}header a{color:#dce8ff}
main{padding:16px 18px;max-width:1000px}h1{font-size:22px;margin:4px 0 12px}h2{font-size:17px;margin:14px 0 6px}
table{border-collapse:collapse;background:#fff;width:100%}th,td{border:1px solid #ccd3de;padding:5px 8px;text-align:left}th{background:#e8edf5}
button,input,select,textarea{font:inherit;padding:4px 9px}button{background:#2f62b3;color:#fff;border:1px solid #234c8c;border-radius:4px;cursor:pointer}
button.plain{background:#fff;color:#1c2330;border-color:#aab4c4}form.inline{display:inline}label{display:inline-block;margin:3px 10px 3px 0}
.card{background:#fff;border:1px solid #ccd3de;border-radius:6px;padding:10px 12px;margin:8px 0}.row{display:flex;gap:12px;flex-wrap:wrap;align-items:center}
.muted{color:#667}.error{color:#a11;font-weight:bold}dialog{border:1px solid #567;border-radius:8px;padding:16px 20px}`

/** A whole document with the bar of its app. */
export function page({ title, body, bar = [], script = '', style: own = '' }: PageParts): Html {
  const links = bar.map(([text, path]) => html`<a href="${path}">${text}</a>`)
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${title}</title>
        <style>
          ${new Html(style + own)}
        </style>
      </head>
      <body data-page="${pageMark}">
        <header>
          <b>${title}</b>
          <nav class="row">${links}</nav>
        </header>
        <main>${body}</main>
        <script nonce="${pageMark}">
          ${new Html(post + script)}
        </script>
      </body>
    </html>`
}

const post = `const post=async(op,fields)=>{const r=await fetch('/do/'+op,{method:'POST',
body:new URLSearchParams({...fields,_page:document.body.dataset.page})});if(r.redirected)location.href=r.url;else location.reload()};`

/** A form that does `op` when it is sent. */
export function form(op: string, body: HtmlPart, o: { readonly inline?: boolean; readonly label?: string } = {}): Html {
  return html`<form
    method="post"
    action="/do/${op}"
    ${o.inline === true && new Html(' class="inline"')}${o.label !== undefined && html` aria-label="${o.label}"`}
  >
    <input type="hidden" name="_page" value="${pageMark}" />${body}
  </form>`
}

export function hidden(name: string, value: string | number): Html {
  return html`<input type="hidden" name="${name}" value="${value}" />`
}

/** A button that does `op` with these fields. */
export function act(
  op: string,
  text: string,
  fields: Readonly<Record<string, string | number>> = {},
  o: { readonly label?: string; readonly plain?: boolean } = {},
): Html {
  const inputs = Object.entries(fields).map(([name, value]) => hidden(name, value))
  const label = o.label === undefined ? false : html` aria-label="${o.label}"`
  return form(op, html`${inputs}<button${label}${o.plain === true && new Html(' class="plain"')}>${text}</button>`, {
    inline: true,
  })
}

export function field(
  label: string,
  name: string,
  o: { readonly value?: string | number; readonly type?: string; readonly size?: number } = {},
): Html {
  return html`<label
    >${label}
    <input name="${name}" type="${o.type ?? 'text'}" value="${o.value ?? ''}" size="${o.size ?? 20}" autocomplete="off"
  /></label>`
}

export function choice(label: string, name: string, options: readonly string[], chosen: string): Html {
  const list = options.map((option) => html`<option${option === chosen && new Html(' selected')}>${option}</option>`)
  return html`<label
    >${label}
    <select name="${name}">
      ${list}
    </select></label
  >`
}

export function tick(label: string, name: string, checked: boolean, value = 'on'): Html {
  return html`<label
    ><input type="checkbox" name="${name}" value="${value}" ${checked && new Html(' checked')} /> ${label}</label
  >`
}

export function radios(name: string, options: readonly string[], chosen: string): readonly Html[] {
  return options.map(
    (option) =>
      html`<label
        ><input type="radio" name="${name}" value="${option}" ${option === chosen && new Html(' checked')} />
        ${option}</label
      >`,
  )
}
