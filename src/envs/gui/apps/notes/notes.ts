import { gui } from '../../../../kits/environment.ts'

const { act, defineApp, form, hidden, html, page, steps, things } = gui

interface Note {
  readonly id: string
  title: string
  text: string
  pinned: boolean
}
interface Notes {
  notes: Note[]
}

const titles = ['Shopping', 'Ideas', 'Recipes', 'Packing list', 'Presents', 'Repairs'] as const
const { click, press, write, look, done, answer, q, type } = steps

/** Notes of several lines, edited as text; with keys for what a text editor can do. */
export const notes = defineApp<Notes>({
  name: 'notes',
  apiVersion: 1,
  start: (d) => ({
    notes: d.shuffled(titles).map((title, at) => ({
      id: `n${at + 1}`,
      title,
      text: d.shuffled(things).slice(0, 3).join('\n'),
      pinned: false,
    })),
  }),
  page: (path, _query, state) => {
    if (path === '/') return list(state)
    const note = state.notes.find(({ id }) => path === `/note/${id}`)
    return note === undefined ? null : notePage(note)
  },
  act: (op, fields, state) => {
    const note = state.notes.find(({ id }) => id === fields['id'])
    if (note === undefined) return '!There is no such note.'
    switch (op) {
      case 'save':
        note.title = (fields['title'] ?? '').trim()
        note.text = (fields['text'] ?? '').replaceAll('\r\n', '\n').trim()
        return '/'
      case 'pin':
        note.pinned = !note.pinned
        return '/'
      case 'delete':
        state.notes = state.notes.filter(({ id }) => id !== note.id)
        return '/'
      default:
        return '!Unknown.'
    }
  },
  goals: {
    'append-line': (d, state) => {
      const note = d.pick(state.notes)
      const line = `${d.between(2, 9)} ${d.pick(things.filter((thing) => !note.text.includes(thing)))}s`
      const append = (words: string) => [
        look(),
        click(`link ${q(note.title)}`),
        click('textbox "Text"'),
        press('ctrl+End'),
        press('Enter'),
        write(words),
        click('button "Save"'),
        done(),
      ]
      return {
        instruction: `Add a new last line "${line}" to the note "${note.title}" and save it.`,
        change: (s) => {
          for (const one of s.notes) if (one.id === note.id) one.text += `\n${line}`
        },
        oracle: append(line),
        near: append(line.slice(2)),
      }
    },
    rewrite: (d, state) => {
      const note = d.pick(state.notes)
      const text = `Nothing before ${d.between(2, 12)} May`
      const rewrite = (save: boolean) => [
        look(),
        click(`link ${q(note.title)}`),
        type('textbox "Text"', text),
        ...(save ? [click('button "Save"')] : [click('link "All notes"')]),
        done(),
      ]
      return {
        instruction: `Replace the whole text of the note "${note.title}" by "${text}" and save it.`,
        change: (s) => {
          for (const one of s.notes) if (one.id === note.id) one.text = text
        },
        oracle: rewrite(true),
        near: rewrite(false),
      }
    },
    pin: (d, state) => {
      const thing = d.pick(state.notes).text.split('\n')[1] ?? ''
      const fitting = state.notes.filter(({ text }) => text.split('\n').includes(thing))
      const pin = (list: readonly Note[]) => [
        look(),
        ...list.map(({ title }) => click(`article ${q(title)} > button "Pin"`)),
        done(),
      ]
      return {
        instruction: `Pin every note that has the line "${thing}", and no other.`,
        change: (s) => {
          for (const one of s.notes) if (one.text.split('\n').includes(thing)) one.pinned = true
        },
        oracle: pin(fitting),
        near: pin([...fitting.slice(1), ...state.notes.filter((one) => !fitting.includes(one)).slice(0, 1)]),
      }
    },
    delete: (d, state) => {
      const [note, other] = d.shuffled(state.notes)
      const remove = (one: Note | undefined) => [
        look(),
        click(`link ${q(one?.title ?? '')}`),
        click('button "Delete"'),
        done(),
      ]
      return {
        instruction: `Delete the note "${note?.title}".`,
        change: (s) => {
          s.notes = s.notes.filter(({ id }) => id !== note?.id)
        },
        oracle: remove(note),
        near: remove(other),
      }
    },
    'last-line': (d, state) => {
      const note = d.pick(state.notes)
      const lines = note.text.split('\n')
      return {
        instruction: `What is the last line of the note "${note.title}"? Answer with the line and change nothing.`,
        answer: lines.at(-1) ?? '',
        oracle: [look(), click(`link ${q(note.title)}`), answer(lines.at(-1) ?? '')],
        near: [look(), answer(lines[0] ?? '')],
      }
    },
  },
})

function list(state: Notes) {
  const shown = state.notes.map(
    ({ id, title, text, pinned }) =>
      html`<article class="card" aria-label="${title}">
        <a href="/note/${id}">${title}</a>
        ${pinned && '(pinned) '}${act('pin', pinned ? 'Unpin' : 'Pin', { id }, { plain: true })}
        <p class="muted">${text.split('\n').map((line) => html`${line}<br />`)}</p>
      </article>`,
  )
  return page({ title: 'Notes', bar: [['All notes', '/']], body: html`${shown}` })
}

function notePage({ id, title, text }: Note) {
  return page({
    title: 'Notes',
    bar: [['All notes', '/']],
    body: html`${form(
        'save',
        html`${hidden('id', id)}
          <p>
            <label>Title <input name="title" value="${title}" size="40" autocomplete="off" /></label>
          </p>
          <p>
            <label>Text<br /><textarea name="text" rows="12" cols="60">${text}</textarea></label>
          </p>
          <button>Save</button>`,
      )}
      <p>${act('delete', 'Delete', { id }, { plain: true })}</p>`,
  })
}
