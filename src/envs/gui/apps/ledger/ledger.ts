import { gui } from '../../../../kits/environment.ts'

const { act, choice, defineApp, field, form, html, page, people, steps, table } = gui

interface Order {
  readonly id: number
  readonly customer: string
  readonly amount: number
}

interface Ledger {
  /** In a file of the workspace; pages show none of them. */
  readonly orders: readonly Order[]
  /** Offered as a download. */
  readonly refunds: readonly Order[]
  /** Sums that were entered, by customer. */
  totals: Record<string, number>
  flagged: string[]
  handedIn: { readonly name: string; readonly text: string } | null
}

const { click, type, select, look, done, q, terminal, upload, saveDownload } = steps
const csv = (orders: readonly Order[]): string =>
  ['id,customer,amount', ...orders.map(({ id, customer, amount }) => `${id},${customer},${amount}`)].join('\n')
const sumOf = (orders: readonly Order[], name: string): number =>
  orders.filter(({ customer }) => customer === name).reduce((sum, { amount }) => sum + amount, 0)
const customersOf = ({ orders }: Ledger): readonly string[] => [
  ...new Set(orders.map(({ customer }) => customer).toSorted()),
]
const sumLine = (file: string, name: string): string =>
  `awk -F, -v c=${JSON.stringify(name)} '$2==c {s+=$3} END {print s}' ${file}`

/** Books beside a terminal: figures come from files of the workspace, and files are handed in on a page. */
export const ledger = defineApp<Ledger>({
  name: 'ledger',
  apiVersion: 1,
  start: (d) => {
    // Each customer has another number of orders.
    const named = d
      .shuffled(people)
      .slice(0, 6)
      .flatMap((name, at) => Array.from({ length: at + 3 }, () => name))
    const order = (customer: string, at: number): Order => ({ id: 1000 + at, customer, amount: d.between(5, 900) })
    return {
      orders: d.shuffled(named).map(order),
      refunds: d.shuffled(named).slice(0, 20).map(order),
      totals: {},
      flagged: [],
      handedIn: null,
    }
  },
  workspace: ({ orders }) => ({
    'orders.csv': `${csv(orders)}\n`,
    'names.txt': `${[...new Set(orders.map(({ customer }) => customer))].join('\n')}\n`,
  }),
  page: (path, _query, state) => {
    if (path === '/') return booksPage(state)
    return path === '/hand-in' ? handInPage(state) : null
  },
  act: (op, fields, state) => {
    const { customer = '', total = '', name = '', text = '' } = fields
    const known = customersOf(state).includes(customer)
    switch (op) {
      case 'total':
        if (!known || !/^\d{1,7}$/.test(total)) return '!A customer and a whole number are needed.'
        state.totals[customer] = Number(total)
        return '/'
      case 'flag':
        if (!known || state.flagged.includes(customer)) return '!This is not possible.'
        state.flagged.push(customer)
        return '/'
      case 'hand-in':
        if (name === '') return '!There is no file.'
        state.handedIn = { name, text: text.trimEnd() }
        return '/hand-in'
      default:
        return '!Unknown.'
    }
  },
  goals: {
    total: (d, state) => {
      const name = d.pick(customersOf(state))
      const sum = sumOf(state.orders, name)
      const enter = (value: number) => [terminal(sumLine('orders.csv', name)), look(), ...entered(name, value), done()]
      return {
        instruction: `Add up the amounts of all orders of ${name} in /workspace/orders.csv with the terminal, and save the sum as their total in the ledger.`,
        change: (s) => {
          s.totals[name] = sum
        },
        oracle: enter(sum),
        near: enter(sum + 1),
      }
    },
    'flag-most-orders': (_d, state) => {
      const count = (name: string) => state.orders.filter(({ customer }) => customer === name).length
      const [most = '', next = ''] = customersOf(state).toSorted((a, b) => count(b) - count(a))
      const flag = (name: string) => [
        terminal('tail -n +2 orders.csv | cut -d, -f2 | sort | uniq -c | sort -rn | head -1'),
        look(),
        click(`row ${q(name)} > button "Flag"`),
        done(),
      ]
      return {
        instruction:
          'Find out which customer has the most orders in /workspace/orders.csv, and flag them in the ledger.',
        change: (s) => {
          s.flagged.push(most)
        },
        oracle: flag(most),
        near: flag(next),
      }
    },
    'hand-in-sorted': (_d, state) => {
      const names = [...new Set(state.orders.map(({ customer }) => customer))]
      const handIn = (make: string) => [
        terminal(make),
        look(),
        click('link "Hand in"'),
        upload('button "File"', ['sorted.txt']),
        click('button "Hand in"'),
        done(),
      ]
      return {
        instruction:
          'Sort the lines of /workspace/names.txt by the alphabet into a file sorted.txt, and hand that file in on the page "Hand in" of the ledger.',
        change: (s) => {
          s.handedIn = { name: 'sorted.txt', text: names.toSorted().join('\n') }
        },
        oracle: handIn('sort names.txt > sorted.txt'),
        near: handIn('sort -r names.txt > sorted.txt'),
      }
    },
    'refunds-of-download': (d, state) => {
      const name = d.pick(state.refunds).customer
      const sum = sumOf(state.refunds, name)
      const enter = (value: number) => [
        look(),
        click('button "Download refunds"'),
        saveDownload('refunds.csv'),
        terminal(sumLine('refunds.csv', name)),
        ...entered(name, value),
        done(),
      ]
      return {
        instruction: `Download the refunds from the ledger, add up those of ${name} with the terminal, and save the sum as their total.`,
        change: (s) => {
          s.totals[name] = sum
        },
        oracle: enter(sum),
        near: enter(sum + 10),
      }
    },
  },
})

function entered(name: string, total: number) {
  return [select('combobox "Customer"', name), type('textbox "Total"', String(total)), click('button "Save"')]
}

const bar = [
  ['Books', '/'],
  ['Hand in', '/hand-in'],
] as const

function booksPage(state: Ledger) {
  const customers = customersOf(state)
  const rows = customers.map((name) => {
    const flag = state.flagged.includes(name) ? 'flagged' : act('flag', 'Flag', { customer: name }, { plain: true })
    return { name, cells: [name, state.totals[name] ?? 'no total', flag] }
  })
  return page({
    title: 'Ledger',
    bar,
    body: html`<h1>Books</h1>
      ${table([], rows)}
      <h2>Total of a customer</h2>
      ${form(
        'total',
        html`${choice('Customer', 'customer', customers, '')} ${field('Total', 'total', { size: 10 })}
          <button>Save</button>`,
      )}
      <p><button class="plain" id="refunds" data-csv="${csv(state.refunds)}">Download refunds</button></p>`,
    script: `
const refunds=document.getElementById('refunds');
refunds.onclick=()=>{const a=document.createElement('a');a.href=URL.createObjectURL(new Blob([refunds.dataset.csv+'\\n']));a.download='refunds.csv';a.click()};`,
  })
}

function handInPage({ handedIn }: Ledger) {
  return page({
    title: 'Ledger',
    bar,
    body: html`<h1>Hand in</h1>
      <p>${handedIn === null ? 'Nothing was handed in.' : `${handedIn.name} was handed in.`}</p>
      <p><input type="file" id="file" aria-label="File" /> <button id="send">Hand in</button></p>`,
    script: `
document.getElementById('send').onclick=async()=>{const [file]=document.getElementById('file').files;
 if(file)post('hand-in',{name:file.name,text:await file.text()})};`,
  })
}
