import { gui } from '../../../../kits/environment.ts'

const { act, defineApp, field, firstName, form, hidden, html, page, people, steps, table } = gui

interface Letter {
  readonly id: string
  readonly from: string
  readonly subject: string
  readonly text: string
  folder: string
  starred: boolean
}
interface Sent {
  readonly to: string
  readonly subject: string
  readonly text: string
}
interface Mail {
  letters: Letter[]
  sent: Sent[]
}

const folders = ['Inbox', 'Archive', 'Spam', 'Invoices'] as const
const topics = [
  'Budget for spring',
  'Lunch on Friday',
  'Invoice 1042',
  'Broken printer',
  'Trip to the coast',
  'New badge',
  'Quarterly report',
  'Window cleaning',
  'You have won',
  'Parking spaces',
  'Key handover',
  'Survey results',
] as const
const places = ['room 4', 'the cellar', 'building C', 'the canteen', 'the roof terrace'] as const
const bar = [...folders.map((name) => [name, `/folder/${name}`] as const), ['Write', '/write'] as const]
const { click, type, select, look, done, answer, q } = steps

/** A mail client: folders, letters, stars, replies. */
export const mail = defineApp<Mail>({
  name: 'mail',
  apiVersion: 1,
  start: (d) => {
    const senders = d.shuffled(people)
    return {
      letters: d.shuffled(topics).map((subject, at) => {
        const from = senders[at % senders.length] ?? ''
        const text = `Hello, this is about ${subject.toLowerCase()}. Please meet me in ${d.pick(places)} at ${d.between(9, 16)}:${d.pick(['00', '15', '30'])}. ${from}`
        return { id: `m${at + 1}`, from, subject, text, folder: 'Inbox', starred: false }
      }),
      sent: [],
    }
  },
  page: (path, query, state) => {
    if (path === '/') return list(state, 'Inbox')
    if (path === '/write') return write(query['to'] ?? '', query['subject'] ?? '')
    const folder = folders.find((name) => path === `/folder/${name}`)
    if (folder !== undefined) return list(state, folder)
    const letter = state.letters.find(({ id }) => path === `/letter/${id}`)
    return letter === undefined ? null : letterPage(letter)
  },
  act: (op, fields, state) => {
    const letter = state.letters.find(({ id }) => id === fields['id'])
    switch (op) {
      case 'star':
        if (letter !== undefined) letter.starred = !letter.starred
        return `/folder/${letter?.folder ?? 'Inbox'}`
      case 'move': {
        const folder = folders.find((name) => name === fields['folder'])
        if (letter === undefined || folder === undefined) return '!There is no such folder.'
        letter.folder = folder
        return `/folder/${folder}`
      }
      case 'delete':
        state.letters = state.letters.filter(({ id }) => id !== fields['id'])
        return '/'
      case 'send': {
        const { to = '', subject = '', text = '' } = fields
        if (!/^[\w.]+@[\w.]+$/.test(to)) return '!The address is not valid.'
        state.sent.push({ to, subject, text: text.trim() })
        return '/'
      }
      default:
        return '!Unknown.'
    }
  },
  goals: {
    star: (d, { letters }) => {
      const [first, second, third] = d.shuffled(letters)
      const star = (letter: Letter | undefined) => click(`row ${q(letter?.subject ?? '')} > button "Star"`)
      return {
        instruction: `Star the letters "${first?.subject}" and "${second?.subject}" in the mail client.`,
        change: (s) => {
          for (const one of s.letters) if (one.id === first?.id || one.id === second?.id) one.starred = true
        },
        oracle: [look(), star(first), star(second), done()],
        near: [look(), star(first), star(third), done()],
      }
    },
    file: (d, { letters }) => {
      const [letter, other] = d.shuffled(letters)
      const folder = d.pick(folders.slice(1))
      const move = (one: Letter | undefined) => [
        look(),
        open(one),
        select('combobox "Folder"', folder),
        click('button "Move"'),
        done(),
      ]
      return {
        instruction: `Move the letter from ${letter?.from} with the subject "${letter?.subject}" to the folder ${folder}.`,
        change: (s) => {
          for (const one of s.letters) if (one.id === letter?.id) one.folder = folder
        },
        oracle: move(letter),
        near: move(other),
      }
    },
    reply: (d, { letters }) => {
      const letter = d.pick(letters)
      const text = `I will be there, number ${d.between(100, 999)}.`
      const reply = (words: string) => [
        look(),
        open(letter),
        click('link "Reply"'),
        type('textbox "Text"', words),
        click('button "Send"'),
        done(),
      ]
      return {
        instruction: `Reply to the letter "${letter.subject}" with exactly this text: ${text} Leave the subject as it is proposed.`,
        change: (s) => {
          s.sent.push({ to: address(letter.from), subject: `Re: ${letter.subject}`, text })
        },
        oracle: reply(text),
        near: reply('I will be there.'),
      }
    },
    'delete-from': (d, { letters }) => {
      const letter = d.pick(letters)
      const other = letters.find(({ from }) => from !== letter.from)
      const remove = (one: Letter | undefined) => [look(), open(one), click('button "Delete"'), done()]
      return {
        instruction: `Delete the letter that ${letter.from} has sent. Keep all others.`,
        change: (s) => {
          s.letters = s.letters.filter(({ id }) => id !== letter.id)
        },
        oracle: remove(letter),
        near: remove(other),
      }
    },
    'when-to-meet': (d, { letters }) => {
      const letter = d.pick(letters)
      const time = /at (\d+:\d+)/.exec(letter.text)?.[1] ?? ''
      return {
        instruction: `At what time does ${letter.from} want to meet, by the letter "${letter.subject}"? Answer as 14:30, and change nothing.`,
        answer: time,
        oracle: [look(), open(letter), answer(time)],
        near: [look(), open(letter), answer('8:59')],
      }
    },
  },
})

function open(letter: Letter | undefined) {
  return click(`link ${q(letter?.subject ?? '')}`)
}

function address(person: string): string {
  return `${firstName(person)}@mail.test`
}

function list({ letters }: Mail, folder: string) {
  const rows = letters
    .filter((letter) => letter.folder === folder)
    .map(({ id, from, subject, starred }) => ({
      name: subject,
      cells: [
        from,
        html`<a href="/letter/${id}">${subject}</a>`,
        act('star', starred ? '★' : '☆', { id }, { label: starred ? 'Remove star' : 'Star', plain: true }),
      ],
    }))
  return page({
    title: 'Mail',
    bar,
    body: html`<h1>${folder}</h1>
      ${table(['From', 'Subject', ''], rows)}`,
  })
}

function letterPage({ id, from, subject, text, folder }: Letter) {
  const reply = `/write?to=${encodeURIComponent(address(from))}&subject=${encodeURIComponent(`Re: ${subject}`)}`
  const options = folders.map((name) => html`<option>${name}</option>`)
  return page({
    title: 'Mail',
    bar,
    body: html`<h1>${subject}</h1>
      <p class="muted">From ${from}, in ${folder}</p>
      <div class="card">${text}</div>
      <div class="row">
        <a href="${reply}">Reply</a> ${form(
          'move',
          html`${hidden('id', id)}<label
              >Folder
              <select name="folder">
                ${options}
              </select></label
            >
            <button class="plain">Move</button>`,
          { inline: true },
        )}
        ${act('delete', 'Delete', { id }, { plain: true })}
      </div>`,
  })
}

function write(to: string, subject: string) {
  return page({
    title: 'Mail',
    bar,
    body: html`<h1>New letter</h1>
      ${form(
        'send',
        html`<p>${field('To', 'to', { value: to, size: 30 })}</p>
          <p>${field('Subject', 'subject', { value: subject, size: 40 })}</p>
          <p>
            <label>Text<br /><textarea name="text" rows="8" cols="60"></textarea></label>
          </p>
          <button>Send</button>`,
      )}`,
  })
}
