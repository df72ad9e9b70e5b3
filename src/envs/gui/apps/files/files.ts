import { gui } from '../../../../kits/environment.ts'

const { act, defineApp, field, form, hidden, html, page, steps } = gui

interface Files {
  /** Folders, by path without a slash at the end; the root is ''. */
  folders: string[]
  /** Size in bytes by path. */
  files: Record<string, number>
  trash: string[]
}

const folders = ['Photos', 'Letters', 'Taxes', 'Music'] as const
const names = [
  'beach.png',
  'harbour.png',
  'garden.png',
  'landlord.txt',
  'aunt.txt',
  'bank.txt',
  'receipt.pdf',
  'wages.pdf',
  'waltz.mp3',
  'march.mp3',
] as const
const { click, doubleClick, type, drag, look, done, answer, press, q } = steps
const base = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const parent = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

/** A file manager: folders, renaming in place, dragging, a context menu, a trash. */
export const files = defineApp<Files>({
  name: 'files',
  apiVersion: 1,
  start: (d) => ({
    folders: [...folders],
    files: Object.fromEntries(
      d
        .shuffled(names)
        .map((name, at) => [at < 4 ? name : `${d.pick(folders)}/${name}`, 100 + at * 311 + d.between(0, 99)]),
    ),
    trash: [],
  }),
  page: (path, _query, state) => {
    const folder = path === '/' ? '' : decodeURIComponent(path.slice('/in/'.length))
    if (path !== '/' && !(path.startsWith('/in/') && state.folders.includes(folder))) return null
    return folderPage(state, folder)
  },
  act: (op, fields, state) => {
    const { path = '', folder = '', name = '' } = fields
    const here = parent(path)
    const back = here === '' ? '/' : `/in/${encodeURIComponent(here)}`
    const size = state.files[path]
    const free = (target: string) => state.files[target] === undefined && !state.folders.includes(target)
    switch (op) {
      case 'rename': {
        const target = here === '' ? name : `${here}/${name}`
        if (size === undefined || !/^[\w. -]{1,60}$/.test(name)) return '!This is not a name.'
        if (!free(target)) return '!There is such a file already.'
        delete state.files[path]
        state.files[target] = size
        return back
      }
      case 'move': {
        const target = folder === '' ? base(path) : `${folder}/${base(path)}`
        if (size === undefined || (folder !== '' && !state.folders.includes(folder)) || !free(target))
          return '!It cannot be moved there.'
        delete state.files[path]
        state.files[target] = size
        return back
      }
      case 'trash':
        if (size === undefined) return '!There is no such file.'
        delete state.files[path]
        state.trash.push(path)
        return back
      case 'folder':
        if (!/^[\w -]{1,40}$/.test(name) || !free(name)) return '!This folder cannot be made.'
        state.folders.push(name)
        return '/'
      default:
        return '!Unknown.'
    }
  },
  goals: {
    rename: (d, state) => {
      const path = d.pick(inRoot(state))
      const name = `${d.pick(['final', 'draft', 'copy'])}-${d.between(10, 99)}.${base(path).split('.')[1]}`
      const rename = (to: string) => [
        look(),
        steps.computer({ action: 'wait', seconds: 0 }),
        { tool: 'browser_click', args: { target: row(path), button: 'right' } },
        click('menuitem "Rename"'),
        press('ctrl+a'),
        steps.write(to),
        press('Enter'),
        done(),
      ]
      return {
        instruction: `Rename the file ${base(path)} of the file manager to ${name}. A right click on a file opens its menu.`,
        change: (s) => rekey(s, path, name),
        oracle: rename(name),
        near: rename(`x${name}`),
      }
    },
    'move-by-drag': (d, state) => {
      const path = d.pick(inRoot(state))
      const [folder, other] = d.shuffled(folders)
      const move = (to: string | undefined) => [look(), drag(row(path), row(to ?? '')), done()]
      return {
        instruction: `Move the file ${path} into the folder ${folder} of the file manager, by dragging it there.`,
        change: (s) => rekey(s, path, `${folder}/${path}`),
        oracle: move(folder),
        near: move(other),
      }
    },
    trash: (d, state) => {
      const [path, other] = d.shuffled(Object.keys(state.files).filter((one) => one.includes('/')))
      const remove = (one = '') => [
        look(),
        doubleClick(row(parent(one))),
        { tool: 'browser_click', args: { target: row(one), button: 'right' } },
        click('menuitem "Move to trash"'),
        done(),
      ]
      return {
        instruction: `Move the file ${base(path ?? '')} of the folder ${parent(path ?? '')} to the trash.`,
        change: (s) => {
          delete s.files[path ?? '']
          s.trash.push(path ?? '')
        },
        oracle: remove(path),
        near: remove(other),
      }
    },
    'new-folder': (d, state) => {
      const name = `Trip ${d.between(2, 80)}`
      const path = d.pick(inRoot(state))
      const make = [look(), type('textbox "New folder"', name), click('button "Make"')]
      return {
        instruction: `Make a new folder "${name}" in the file manager, and drag the file ${path} into it.`,
        change: (s) => {
          s.folders.push(name)
          rekey(s, path, `${name}/${path}`)
        },
        oracle: [...make, drag(row(path), row(name)), done()],
        near: [...make, done()],
      }
    },
    largest: (_d, state) => {
      const sorted = inRoot(state).toSorted((a, b) => (state.files[b] ?? 0) - (state.files[a] ?? 0))
      return {
        instruction:
          'Which file (not in a folder) of the file manager is the largest? Answer with its name and change nothing.',
        answer: sorted[0] ?? '',
        oracle: [look(), answer(sorted[0] ?? '')],
        near: [look(), answer(sorted[1] ?? '')],
      }
    },
  },
})

function inRoot(state: Files): readonly string[] {
  return Object.keys(state.files).filter((path) => !path.includes('/'))
}

function rekey(state: Files, from: string, to: string): void {
  const size = state.files[from] ?? 0
  delete state.files[from]
  state.files[to] = size
}

function row(path: string): string {
  return `row ${q(base(path))}`
}

function folderPage(state: Files, folder: string) {
  const inside = folder === '' ? state.folders : []
  const mine = Object.keys(state.files).filter((path) => parent(path) === folder)
  const folderRows = inside.map(
    (name) =>
      html`<tr tabindex="0" aria-label="${name}" data-folder="${name}">
        <td>[folder] ${name}</td>
        <td></td>
      </tr>`,
  )
  const fileRows = mine.toSorted().map(
    (path) =>
      html`<tr tabindex="0" aria-label="${base(path)}" data-path="${path}">
        <td>${base(path)}</td>
        <td>${state.files[path] ?? 0} bytes</td>
      </tr>`,
  )
  return page({
    title: 'Files',
    bar: [['All folders', '/']],
    style:
      'tr{user-select:none}#menu{position:fixed;background:#fff;border:1px solid #667;padding:4px}#menu button{display:block;width:160px;margin:2px}',
    body: html`<h1>${folder === '' ? 'Files' : folder}</h1>
      <table>
        <tbody>
          ${folderRows}${fileRows}
        </tbody>
      </table>
      <p>${form('folder', html`${field('New folder', 'name', { size: 16 })} <button class="plain">Make</button>`)}</p>
      <div id="menu" role="menu" hidden>
        <button role="menuitem" data-do="rename" class="plain">Rename</button
        ><button role="menuitem" data-do="trash" class="plain">Move to trash</button>
      </div>
      <p class="muted">
        ${state.trash.length} in the trash ${act('none', 'Help', {}, { plain: true })}${hidden('x', '')}
      </p>`,
    script: `
const menu=document.getElementById('menu');let held=null,at=null;
const fold=document.querySelectorAll('[data-folder]');
for(const f of fold)f.ondblclick=()=>{location.href='/in/'+encodeURIComponent(f.dataset.folder)};
for(const f of document.querySelectorAll('[data-path]')){
 f.oncontextmenu=e=>{e.preventDefault();at=f;menu.style.left=e.clientX+'px';menu.style.top=e.clientY+'px';menu.hidden=false};
 f.onpointerdown=e=>{if(e.button===0)held={path:f.dataset.path,x:e.clientX,y:e.clientY}}}
onpointerup=e=>{if(!held)return;const {path,x,y}=held;held=null;if(Math.hypot(e.clientX-x,e.clientY-y)<8)return;
 const over=document.elementFromPoint(e.clientX,e.clientY)?.closest('[data-folder]');if(over)post('move',{path,folder:over.dataset.folder})};
addEventListener('click',e=>{if(!menu.contains(e.target))menu.hidden=true});
menu.onclick=e=>{const what=e.target.dataset.do;menu.hidden=true;if(!what||!at)return;const path=at.dataset.path;
 if(what==='trash')return post('trash',{path});
 const td=at.cells[0],input=document.createElement('input');input.value=td.textContent;input.setAttribute('aria-label','New name');td.textContent='';td.append(input);input.focus();input.select();
 input.onkeydown=k=>{if(k.key==='Enter')post('rename',{path,name:input.value});if(k.key==='Escape')location.reload()}};`,
  })
}
