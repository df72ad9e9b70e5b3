import { gui } from '../../../../kits/environment.ts'

const { act, choice, defineApp, field, firstName, form, hidden, html, page, people, steps } = gui

interface Card {
  readonly id: string
  title: string
  column: string
  owner: string
}
interface Board {
  cards: Card[]
}

const columns = ['To do', 'Doing', 'Review', 'Finished'] as const
const jobs = [
  'Paint the fence',
  'Order new chairs',
  'Write the manual',
  'Fix the heating',
  'Call the bank',
  'Update the map',
  'Test the alarm',
  'Sort the archive',
  'Plan the party',
  'Clean the filters',
] as const
const owners = people.slice(0, 5).map(firstName)
const { click, type, select, drag, look, done, answer, q } = steps

/** A board of cards that are dragged from column to column. */
export const kanban = defineApp<Board>({
  name: 'kanban',
  apiVersion: 1,
  start: (d) => ({
    cards: d
      .shuffled(jobs)
      .slice(0, 8)
      .map((title, at) => ({
        id: `c${at + 1}`,
        title,
        column: d.pick(columns.slice(0, 3)),
        owner: d.pick(owners),
      })),
  }),
  page: (path, _query, state) => {
    if (path === '/') return board(state)
    if (path === '/new') return editor({ id: '', title: '', column: 'To do', owner: owners[0] ?? '' })
    const card = state.cards.find(({ id }) => path === `/card/${id}`)
    return card === undefined ? null : editor(card)
  },
  act: (op, fields, state) => {
    const card = state.cards.find(({ id }) => id === fields['id'])
    const column = columns.find((name) => name === fields['column'])
    switch (op) {
      case 'move':
        if (card === undefined || column === undefined) return '!There is no such column.'
        card.column = column
        return '/'
      case 'save': {
        const title = (fields['title'] ?? '').trim()
        const owner = owners.find((name) => name === fields['owner'])
        if (title === '' || column === undefined || owner === undefined)
          return '!A card needs a title, a column and an owner.'
        if (card === undefined) state.cards.push({ id: `c${state.cards.length + 1}`, title, column, owner })
        else Object.assign(card, { title, column, owner })
        return '/'
      }
      case 'remove':
        state.cards = state.cards.filter(({ id }) => id !== fields['id'])
        return '/'
      default:
        return '!Unknown.'
    }
  },
  goals: {
    drag: (d, { cards }) => {
      const card = d.pick(cards)
      const column = d.pick(columns.filter((name) => name !== card.column))
      const other = columns.find((name) => name !== card.column && name !== column) ?? ''
      const move = (to: string) => [look(), drag(group(card), `region ${q(to)}`), done()]
      return {
        instruction: `On the board, move the card "${card.title}" to the column "${column}".`,
        change: (s) => {
          for (const one of s.cards) if (one.id === card.id) one.column = column
        },
        oracle: move(column),
        near: move(other),
      }
    },
    'drag-two': (d, { cards }) => {
      const [first, second] = d.shuffled(cards)
      const moves = [first, second].map((card) => drag(group(card), 'region "Finished"'))
      return {
        instruction: `Drag the cards "${first?.title}" and "${second?.title}" into the column "Finished".`,
        change: (s) => {
          for (const one of s.cards) if (one.id === first?.id || one.id === second?.id) one.column = 'Finished'
        },
        oracle: [look(), ...moves, done()],
        near: [look(), ...moves.slice(0, 1), done()],
      }
    },
    add: (d, { cards }) => {
      const title = `${d.pick(['Buy', 'Repair', 'Return'])} ${d.between(3, 30)} lanterns`
      const [column, owner] = [d.pick(columns.slice(1)), d.pick(owners.slice(1))]
      const add = (who: string) => [
        look(),
        click('link "New card"'),
        type('textbox "Title"', title),
        select('combobox "Column"', column),
        select('combobox "Owner"', who),
        click('button "Save"'),
        done(),
      ]
      return {
        instruction: `Add a card "${title}" to the board, in the column "${column}", owned by ${owner}.`,
        change: (s) => {
          s.cards.push({ id: `c${cards.length + 1}`, title, column, owner })
        },
        oracle: add(owner),
        near: add(owners[0] ?? ''),
      }
    },
    reassign: (d, { cards }) => {
      const card = d.pick(cards)
      const [owner, other] = d.shuffled(owners.filter((name) => name !== card.owner))
      const assign = (who = '') => [
        look(),
        click(`link ${q(card.title)}`),
        select('combobox "Owner"', who),
        click('button "Save"'),
        done(),
      ]
      return {
        instruction: `Give the card "${card.title}" to ${owner}.`,
        change: (s) => {
          for (const one of s.cards) if (one.id === card.id) one.owner = owner ?? ''
        },
        oracle: assign(owner),
        near: assign(other),
      }
    },
    count: (d, { cards }) => {
      const owner = d.pick(cards).owner
      const count = cards.filter((card) => card.owner === owner).length
      return {
        instruction: `How many cards of the board does ${owner} own? Answer with the number and change nothing.`,
        answer: String(count),
        oracle: [look(), answer(String(count))],
        near: [look(), answer(String(count + 1))],
      }
    },
  },
})

function group(card: Card | undefined): string {
  return `group ${q(card?.title ?? '')}`
}

function board({ cards }: Board) {
  const shown = columns.map((name) => {
    const mine = cards
      .filter(({ column }) => column === name)
      .map(
        (card) =>
          html`<div class="card job" role="group" aria-label="${card.title}" data-id="${card.id}">
            <a href="/card/${card.id}">${card.title}</a><br /><span class="muted">${card.owner}</span>
          </div>`,
      )
    return html`<section aria-label="${name}" data-column="${name}">
      <h2>${name}</h2>
      ${mine}
    </section>`
  })
  return page({
    title: 'Board',
    bar: [
      ['Board', '/'],
      ['New card', '/new'],
    ],
    style:
      '.board{display:grid;grid-template-columns:repeat(4,1fr);gap:10px}section{background:#e4e9f2;border-radius:6px;padding:6px 10px;min-height:480px}.job{cursor:grab;user-select:none;touch-action:none}.job.up{opacity:.6}',
    body: html`<div class="board">${shown}</div>`,
    script: `
let held=null;
for(const job of document.querySelectorAll('.job')){job.ondragstart=()=>false;job.querySelector('a').ondragstart=()=>false;
 job.onpointerdown=e=>{held={job,x:e.clientX,y:e.clientY,moved:false}}}
onpointermove=e=>{if(held&&Math.hypot(e.clientX-held.x,e.clientY-held.y)>6){held.moved=true;held.job.classList.add('up')}};
onpointerup=e=>{if(!held)return;const {job,moved}=held;held=null;job.classList.remove('up');if(!moved)return;
 const column=document.elementsFromPoint(e.clientX,e.clientY).find(n=>n.dataset&&n.dataset.column);
 if(column)post('move',{id:job.dataset.id,column:column.dataset.column})};
addEventListener('click',e=>{if(e.target.closest('.job')&&e.detail===0)return},true);`,
  })
}

function editor({ id, title, column, owner }: Card) {
  return page({
    title: 'Board',
    bar: [['Board', '/']],
    body: html`<h1>${id === '' ? 'New card' : title}</h1>
      ${form(
        'save',
        html`${hidden('id', id)}
          <p>${field('Title', 'title', { value: title, size: 40 })}</p>
          <p>${choice('Column', 'column', columns, column)} ${choice('Owner', 'owner', owners, owner)}</p>
          <button>Save</button>`,
      )}${id !== '' && act('remove', 'Remove card', { id }, { plain: true })}`,
  })
}
