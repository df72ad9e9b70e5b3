import { gui } from '../../../../kits/environment.ts'

const { cities, defineApp, html, page, steps } = gui

interface Sheet {
  /** By name such as B3. */
  cells: Record<string, string>
}

const columns = ['A', 'B', 'C', 'D', 'E'] as const
const rows = 12
const { press, write, look, done, answer, doubleClick, click, q } = steps
const cell = (name: string): string => `gridcell ${q(name)}`

/** A spreadsheet: cells are edited in place, formulas of sums are shown as their value. */
export const sheet = defineApp<Sheet>({
  name: 'sheet',
  apiVersion: 1,
  start: (d) => {
    const cells: Record<string, string> = { A1: 'City', B1: 'January', C1: 'February', D1: 'Sum' }
    for (const [at, city] of d.shuffled(cities).slice(0, 6).entries()) {
      const row = at + 2
      cells[`A${row}`] = city
      cells[`B${row}`] = String(d.between(10, 99))
      cells[`C${row}`] = String(d.between(10, 99))
    }
    return { cells }
  },
  page: (path, query, state) => (path === '/' ? grid(state, query['at'] ?? '') : null),
  act: (op, fields, state) => {
    const name = fields['cell'] ?? ''
    const text = (fields['text'] ?? '').trim()
    if (op !== 'set' || !/^[A-E]([1-9]|1[0-2])$/.test(name)) return '!There is no such cell.'
    if (text === '') delete state.cells[name]
    else state.cells[name] = text
    return `/?at=${name}`
  },
  goals: {
    set: (d) => {
      const name = `${d.pick(['B', 'C'])}${d.between(2, 7)}`
      const value = String(d.between(100, 999))
      return {
        instruction: `Set the cell ${name} of the spreadsheet to ${value}.`,
        change: (s) => {
          s.cells[name] = value
        },
        oracle: [look(), ...put(name, value), done()],
        near: [look(), ...put(name === 'B2' ? 'B3' : 'B2', value), done()],
      }
    },
    'sum-formula': (d, state) => {
      const row = d.between(2, 7)
      const formula = `=SUM(B${row}:C${row})`
      return {
        instruction: `Put a formula into column D of the row of ${state.cells[`A${row}`]} that adds columns B and C of this row. Write it as =SUM(B9:C9), with the right row.`,
        change: (s) => {
          s.cells[`D${row}`] = formula
        },
        oracle: [look(), ...put(`D${row}`, formula), done()],
        near: [look(), ...put(`D${row}`, String(valueOf(state, formula))), done()],
      }
    },
    rename: (d, state) => {
      const row = d.between(2, 7)
      const city = d.pick(cities.filter((one) => !Object.values(state.cells).includes(one)))
      return {
        instruction: `Replace the city ${state.cells[`A${row}`]} by ${city} in the spreadsheet; leave its numbers as they are.`,
        change: (s) => {
          s.cells[`A${row}`] = city
        },
        oracle: [look(), ...put(`A${row}`, city), done()],
        near: [look(), ...put(`A${row}`, city), ...put(`B${row}`, '0'), done()],
      }
    },
    clear: (d, state) => {
      const row = d.between(2, 7)
      const names = columns.slice(0, 3).map((column) => `${column}${row}`)
      const wipe = (name: string) => [click(cell(name)), press('Delete')]
      return {
        instruction: `Empty the cells of ${state.cells[`A${row}`]}, its name and both of its numbers.`,
        change: (s) => {
          for (const name of names) delete s.cells[name]
        },
        oracle: [look(), ...names.flatMap(wipe), done()],
        near: [look(), ...names.slice(0, 2).flatMap(wipe), done()],
      }
    },
    total: (d, state) => {
      const column = d.pick(['B', 'C'])
      const sum = valueOf(state, `=SUM(${column}2:${column}7)`)
      return {
        instruction: `What is the sum of all numbers in column ${column} of the spreadsheet? Answer with the number and change nothing.`,
        answer: String(sum),
        oracle: [look(), answer(String(sum))],
        near: [look(), answer(String(sum + 1))],
      }
    },
  },
})

function put(name: string, text: string) {
  return [doubleClick(cell(name)), press('ctrl+a'), write(text), press('Enter')]
}

function valueOf({ cells }: Sheet, text: string): number {
  const match = /^=SUM\(([A-E])(\d+):([A-E])(\d+)\)$/i.exec(text)
  if (match === null) return Number(text) || 0
  const [, from = 'A', top, to = 'A', bottom] = match
  let sum = 0
  for (const column of columns) {
    if (column < from.toUpperCase() || column > to.toUpperCase()) continue
    for (let row = Number(top); row <= Number(bottom); row += 1) sum += Number(cells[`${column}${row}`]) || 0
  }
  return sum
}

function grid(state: Sheet, at: string) {
  const line = (row: number) =>
    columns.map((column) => {
      const name = `${column}${row}`
      const text = state.cells[name] ?? ''
      const shown = text.startsWith('=') ? String(valueOf(state, text)) : text
      return html`<td
        role="gridcell"
        tabindex="${name === (at === '' ? 'A1' : at) ? 0 : -1}"
        aria-label="${name}"
        data-cell="${name}"
        data-text="${text}"
      >
        ${shown}
      </td>`
    })
  const body = Array.from(
    { length: rows },
    (_, n) =>
      html`<tr>
        <th>${n + 1}</th>
        ${line(n + 1)}
      </tr>`,
  )
  return page({
    title: 'Sheet',
    style: 'td{height:28px;width:110px}td:focus{outline:2px solid #2f62b3}td input{width:100%;border:0;padding:0}',
    body: html`<p class="muted">
        Double-click a cell to edit it, Enter to keep it, Escape to give up, Delete to empty it.
      </p>
      <table role="grid">
        <thead>
          <tr>
            <th></th>
            ${columns.map((column) => html`<th>${column}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${body}
        </tbody>
      </table>`,
    script: `
const start=new URLSearchParams(location.search).get('at');if(start)document.querySelector('[data-cell="'+start+'"]')?.focus();
const edit=(td,text)=>{const input=document.createElement('input');input.value=text;input.setAttribute('aria-label','Editing '+td.dataset.cell);
 td.textContent='';td.append(input);input.focus();input.select();
 input.onkeydown=e=>{e.stopPropagation();if(e.key==='Enter')post('set',{cell:td.dataset.cell,text:input.value});if(e.key==='Escape')location.reload()}};
for(const td of document.querySelectorAll('[data-cell]')){td.ondblclick=()=>edit(td,td.dataset.text);td.onmousedown=()=>td.focus();
 td.onkeydown=e=>{const c=td.dataset.cell,k=e.key;
  if(k==='Delete'){e.preventDefault();post('set',{cell:c,text:''})}
  else if(k==='Enter'||k==='F2'){e.preventDefault();edit(td,td.dataset.text)}
  else if(k.startsWith('Arrow')){e.preventDefault();const col=c.charCodeAt(0)+(k==='ArrowRight')-(k==='ArrowLeft');const row=+c.slice(1)+(k==='ArrowDown')-(k==='ArrowUp');
   document.querySelector('[data-cell="'+String.fromCharCode(col)+row+'"]')?.focus()}
  else if(k.length===1&&!e.ctrlKey){e.preventDefault();edit(td,k);td.querySelector('input').setSelectionRange(1,1)}}}`,
  })
}
