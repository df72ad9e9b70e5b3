import { gui } from '../../../../kits/environment.ts'

const { act, choice, defineApp, firstName, form, hidden, html, page, people, steps, table } = gui

interface Ticket {
  readonly id: string
  readonly who: string
  readonly text: string
  state: string
  level: string
  notes: string[]
}
interface Helpdesk {
  tickets: Ticket[]
}

const states = ['Open', 'Waiting', 'Solved'] as const
const levels = ['Low', 'Normal', 'High'] as const
const problems = [
  'The screen stays black',
  'I forgot my password',
  'The printer eats paper',
  'My mail is slow',
  'The door card fails',
  'A key is stuck',
  'No sound in calls',
  'The mouse jumps',
] as const
const { click, type, select, look, done, answer, q } = steps

/** A helpdesk: tickets are opened in dialogs, get notes, levels and states. */
export const helpdesk = defineApp<Helpdesk>({
  name: 'helpdesk',
  apiVersion: 1,
  start: (d) => ({
    tickets: d.shuffled(problems).map((text, at) => ({
      id: `T-${101 + at}`,
      who: people[at] ?? '',
      text,
      state: 'Open',
      level: d.pick(levels),
      notes: [],
    })),
  }),
  page: (path, query, state) => (path === '/' ? list(state, query['ticket'] ?? '') : null),
  act: (op, fields, state) => {
    const ticket = state.tickets.find(({ id }) => id === fields['id'])
    if (ticket === undefined) return '!There is no such ticket.'
    if (op === 'update') {
      ticket.state = states.find((one) => one === fields['state']) ?? ticket.state
      ticket.level = levels.find((one) => one === fields['level']) ?? ticket.level
      const note = (fields['note'] ?? '').trim()
      if (note !== '') ticket.notes.push(note)
      return '/'
    }
    return '!Unknown.'
  },
  goals: {
    solve: (d, { tickets }) => {
      const [ticket, other] = d.shuffled(tickets)
      const solve = (one: Ticket | undefined) => [
        look(),
        click(`link ${q(one?.id ?? '')}`),
        select('combobox "State"', 'Solved'),
        click('button "Update"'),
        done(),
      ]
      return {
        instruction: `In the helpdesk, set the ticket of ${ticket?.who} ("${ticket?.text}") to Solved.`,
        change: (s) => {
          for (const one of s.tickets) if (one.id === ticket?.id) one.state = 'Solved'
        },
        oracle: solve(ticket),
        near: solve(other),
      }
    },
    note: (d, { tickets }) => {
      const ticket = d.pick(tickets)
      const note = `Call back at extension ${d.between(200, 899)}`
      const add = (state: string) => [
        look(),
        click(`link ${q(ticket.id)}`),
        type('textbox "Note"', note),
        select('combobox "State"', state),
        click('button "Update"'),
        done(),
      ]
      return {
        instruction: `Add the note "${note}" to the ticket ${ticket.id} of the helpdesk and set it to Waiting.`,
        change: (s) => {
          for (const one of s.tickets) {
            if (one.id === ticket.id) {
              one.notes.push(note)
              one.state = 'Waiting'
            }
          }
        },
        oracle: add('Waiting'),
        near: add('Open'),
      }
    },
    raise: (d, { tickets }) => {
      const low = tickets.filter(({ level }) => level === 'Low')
      const lows = low.length > 0 ? low : tickets.filter(({ level }) => level === 'Normal')
      const from = low.length > 0 ? 'Low' : 'Normal'
      const raise = (list: readonly Ticket[]) => [
        look(),
        ...list.flatMap(({ id }) => [
          click(`link ${q(id)}`),
          select('combobox "Level"', 'High'),
          click('button "Update"'),
        ]),
        done(),
      ]
      return {
        instruction: `Raise every ticket of the helpdesk whose level is ${from} to High; leave the others.`,
        change: (s) => {
          for (const one of s.tickets) if (one.level === from) one.level = 'High'
        },
        oracle: raise(d.shuffled(lows)),
        near: raise(lows.slice(1)),
      }
    },
    who: (d, { tickets }) => {
      const ticket = d.pick(tickets)
      const other = tickets.find(({ who }) => who !== ticket.who)
      return {
        instruction: `Who has the problem "${ticket.text}" by the helpdesk? Answer with the full name and change nothing.`,
        answer: ticket.who,
        oracle: [look(), answer(ticket.who)],
        near: [look(), answer(firstName(other?.who ?? ''))],
      }
    },
  },
})

function list({ tickets }: Helpdesk, open: string) {
  const rows = tickets.map(({ id, who, text, state, level }) => ({
    name: id,
    cells: [html`<a href="/?ticket=${id}">${id}</a>`, who, text, level, state],
  }))
  const ticket = tickets.find(({ id }) => id === open)
  return page({
    title: 'Helpdesk',
    bar: [['Tickets', '/']],
    body: html`${table(['Ticket', 'Who', 'Problem', 'Level', 'State'], rows)}
    ${
      ticket !== undefined &&
      html`<dialog id="ticket" aria-label="${ticket.id}">
        <h2>${ticket.id}: ${ticket.text}</h2>
        <ul>
          ${ticket.notes.map((note) => html`<li>${note}</li>`)}
        </ul>
        ${form(
          'update',
          html`${hidden('id', ticket.id)}
            <p>${choice('State', 'state', states, ticket.state)} ${choice('Level', 'level', levels, ticket.level)}</p>
            <p>
              <label>Note <input name="note" size="40" autocomplete="off" /></label>
            </p>
            <button>Update</button>`,
        )} <a href="/">Close</a>
      </dialog>`
    }${open !== '' && ticket === undefined && act('none', 'Not found')}`,
    script: "document.getElementById('ticket')?.showModal();",
  })
}
