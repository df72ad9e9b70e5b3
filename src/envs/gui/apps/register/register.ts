import { gui } from '../../../../kits/environment.ts'

const { act, defineApp, html, page, people, steps, table } = gui

interface Scan {
  /** Of its file in the workspace. */
  readonly file: string
  readonly about: string
  readonly folder: string
  filed: boolean
}
interface Register {
  readonly scans: Scan[]
}

const folders = ['Invoices', 'Letters', 'Plans'] as const
const { click, look, done, computer, press, write, q } = steps

/** A register of scans, used beside a file manager: it says where each file belongs. */
export const register = defineApp<Register>({
  name: 'register',
  apiVersion: 1,
  beside: 'files',
  start: (d) => {
    const numbers = d.shuffled(Array.from({ length: 40 }, (_, at) => 100 + at * 7)).slice(0, 4)
    const who = d.shuffled(people)
    return {
      scans: numbers.map((number, at) => {
        const folder = d.pick(folders)
        const [first = ''] = (who[at] ?? '').toLowerCase().split(' ')
        return {
          file: `scan-${number}.txt`,
          about: `${folder.slice(0, -1).toLowerCase()}-${first}`,
          folder,
          filed: false,
        }
      }),
    }
  },
  workspace: ({ scans }) => ({
    ...Object.fromEntries(folders.map((folder) => [`${folder}/`, ''])),
    ...Object.fromEntries(scans.map(({ file, about }) => [file, `${file}: ${about}\n`])),
  }),
  page: (path, _query, state) => (path === '/' ? registerPage(state) : null),
  act: (op, fields, { scans }) => {
    const scan = scans.find(({ file }) => file === fields['file'])
    if (op !== 'file' || scan === undefined) return '!This is not possible.'
    scan.filed = true
    return '/'
  },
  goals: {
    rename: (d, state) => {
      const [scan, other] = d.shuffled(state.scans)
      const rename = (one: Scan | undefined) => [
        look(),
        computer({ action: 'click', ...iconOf(state, one?.file ?? '') }),
        press('F2'),
        press('ctrl+a'),
        write(`${scan?.about}.txt\n`),
        done(),
      ]
      return {
        instruction: `In the file manager, rename ${scan?.file} of /workspace to what the register in the browser says it is about, with .txt at its end (such as letter-ada.txt).`,
        files: (files) => moved(files, scan?.file ?? '', `${scan?.about}.txt`),
        oracle: rename(scan),
        near: rename(other),
      }
    },
    move: (d, state) => {
      const scan = d.pick(state.scans)
      const wrong = folders.find((folder) => folder !== scan.folder) ?? ''
      const move = (folder: string) => [
        look(),
        ...movedTo(state, scan.file, folder),
        click(`row ${q(scan.file)} > button "Filed"`),
        done(),
      ]
      return {
        instruction: `In the file manager, move ${scan.file} of /workspace into the folder that the register in the browser names for it. Then mark it as filed in the register.`,
        change: (s) => {
          for (const one of s.scans) if (one.file === scan.file) one.filed = true
        },
        files: (files) => moved(files, scan.file, `${scan.folder}/${scan.file}`),
        oracle: move(scan.folder),
        near: move(wrong),
      }
    },
  },
})

function moved(files: Readonly<Record<string, string>>, from: string, to: string) {
  const { [from]: data = '', ...rest } = files
  return { ...rest, [to]: data }
}

/** Where the file manager shows an entry of /workspace: the way up, the folders, then the files, by name. */
function iconOf({ scans }: Register, name: string) {
  const shown = ['..', ...folders, ...scans.map(({ file }) => file).toSorted()]
  return { x: 839, y: 155 + shown.indexOf(name) * 61 }
}

/** By the dialog "Move to" of the file manager. */
function movedTo(state: Register, file: string, folder: string) {
  return [
    computer({ action: 'click', ...iconOf(state, file) }),
    press('F6'),
    press('ctrl+a'),
    write(`/workspace/${folder}/${file}\n`),
  ]
}

function registerPage({ scans }: Register) {
  const rows = scans.map(({ file, about, folder, filed }) => ({
    name: file,
    cells: [file, about, folder, filed ? 'filed' : act('file', 'Filed', { file }, { plain: true })],
  }))
  return page({
    title: 'Register',
    bar: [['Scans', '/']],
    body: html`<p>Scans of /workspace, and the folders that they belong into.</p>
      ${table(['File', 'About', 'Folder', ''], rows)}`,
  })
}
