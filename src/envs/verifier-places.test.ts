import { expect, test } from 'vitest'
import type { BoxChange } from '../sandbox/index.ts'
import { cachesIn, suspectsIn } from './verifier-places.ts'

const places = {
  work: ['/workspace', '/srv/report.json'],
  instruction: 'Mend /usr/local/bin/report and write a file.',
  programs: ['/opt/venv/bin', '/usr/local/cargo/bin', '/workspace/.venv/bin'],
}

/** The directories above are listed too, as the daemon does. */
function changed(paths: readonly string[], kind: BoxChange['kind'] = 'added'): BoxChange[] {
  const above = new Set(paths.flatMap((path) => path.split('/').map((_, i, parts) => parts.slice(0, i).join('/'))))
  const directories = [...above].filter((path) => path !== '').map((path) => ({ path, kind: 'modified' as const }))
  return [...directories, ...paths.map((path) => ({ path, kind }))]
}
const kindsOf = (changes: readonly BoxChange[], at: Parameters<typeof suspectsIn>[1] = places): string[] =>
  suspectsIn(changes, at).map(({ kind, path }) => `${kind} ${path}`)

const site = '/usr/local/lib/python3.11/site-packages'

test.each([
  ['an interpreter', 'modified', 'shadowed_tool', '/usr/bin/python3.11'],
  ['a shell', 'modified', 'shadowed_tool', '/bin/dash'],
  ['any other program of the image', 'modified', 'program', '/usr/bin/xxd'],
  ['a program before another of its name', 'added', 'shadowed_tool', '/usr/local/bin/python3'],
  ['the same, in a home', 'added', 'shadowed_tool', '/root/.local/bin/git'],
  ['a runner that the image lacks', 'added', 'test_runner', '/usr/local/bin/pytest'],
  ['the zip before the library', 'added', 'start_file', '/usr/lib/python311.zip'],
  ['the zip of another build', 'added', 'start_file', '/opt/conda/lib/python312.zip'],
  ['a path file', 'added', 'start_file', `${site}/x.pth`],
  ['a path file of a user', 'added', 'start_file', '/root/.local/lib/python3.11/site-packages/x.pth'],
  ['sitecustomize', 'modified', 'start_file', '/etc/python3.11/sitecustomize.py'],
  ['usercustomize', 'added', 'start_file', '/home/agent/.local/lib/python3.11/site-packages/usercustomize.py'],
  ['the same as a package', 'added', 'start_file', `${site}/usercustomize/__init__.py`],
  ['the same, compiled', 'added', 'start_file', `${site}/sitecustomize.cpython-311-x86_64-linux-gnu.so`],
  ['a configuration of a virtual environment', 'added', 'start_file', '/usr/bin/pyvenv.cfg'],
  ['a module among those of the interpreter', 'added', 'library', '/usr/lib/python3.11/json.py'],
  ['a module among the compiled ones', 'added', 'library', '/usr/lib/python3.11/lib-dynload/math.so'],
  ['a patched library', 'modified', 'library', `${site}/numpy/testing/__init__.py`],
  ['a module in a package of the image', 'added', 'library', `${site}/numpy/extra.py`],
  ['a patched runner', 'modified', 'test_runner', `${site}/_pytest/python.py`],
  ['a runner of an own version', 'added', 'test_runner', `${site}/pytest/__init__.py`],
  ['a plugin by entry point', 'added', 'test_plugin', `${site}/evil-1.dist-info/entry_points.txt`],
  ['the same of an egg', 'added', 'test_plugin', `${site}/evil.egg-info/entry_points.txt`],
  ['a patched library of node', 'modified', 'library', '/usr/lib/node_modules/npm/lib/npm.js'],
  ['the C library', 'modified', 'library', '/usr/lib/x86_64-linux-gnu/libc.so.6'],
  ['a library before another', 'added', 'library', '/usr/local/lib/libm.so.6'],
  ['where the loader looks', 'added', 'library', '/etc/ld.so.conf.d/0.conf'],
  ['the cache of the loader', 'modified', 'library', '/etc/ld.so.cache'],
  ['a library of perl', 'modified', 'library', '/usr/share/perl5/Test/More.pm'],
  ['what a login shell reads', 'added', 'shell_start', '/etc/profile.d/x.sh'],
  ['the same in a home', 'modified', 'shell_start', '/root/.bashrc'],
  ['where packages come from', 'added', 'tool_config', '/root/.config/pip/pip.conf'],
  ['the configuration of a runner at the root', 'added', 'test_config', '/pytest.ini'],
  ['a conftest at the root', 'added', 'test_config', '/conftest.py'],
  ['packages of node at the root', 'added', 'test_config', '/node_modules/jest/index.js'],
  ['the configuration of a runner above the work', 'added', 'test_config', '/srv/pyproject.toml'],
  ['the interpreter where the image looks first', 'modified', 'shadowed_tool', '/opt/venv/bin/python'],
  ['a shell where the image looks first', 'added', 'shadowed_tool', '/usr/local/cargo/bin/bash'],
  ['what a link of the system leads to', 'modified', 'shadowed_tool', '/etc/alternatives/awk'],
  ['a patched toolchain', 'modified', 'library', '/usr/local/go/pkg/tool/linux_amd64/test2json'],
  ['a file more in a package of a toolchain', 'added', 'library', '/usr/local/go/src/testing/zz.go'],
  ['a patched compiler', 'modified', 'library', '/usr/local/rustup/toolchains/stable/lib/rustlib/x.rlib'],
  ['the accounts', 'modified', 'start_file', '/etc/passwd'],
] as const)('%s is suspect (%s)', (_, kind, sign, path) => {
  expect(kindsOf(changed([path], kind))).toEqual([`${sign} ${path}`])
})

test.each([
  '/usr/local/bin',
  '/bin',
  '/lib64',
  '/usr/lib/python3',
  site,
  '/root',
  '/root/.local',
  '/home/agent/.local/lib/python3.11',
  '/opt/venv/bin',
  '/opt/venv',
])('%s may be a link now, in which nothing is listed but what was deleted', (path) => {
  const gone = changed([`${path}/python3`], 'deleted')
  const linked = suspectsIn(gone, places).filter((one) => one.path === path)
  expect(linked).toEqual([{ kind: 'linked_place', path, unless: { isDirectory: true } }])
  expect(kindsOf(changed([`${path}/own`])).filter((one) => one.startsWith('linked_place'))).toEqual([])
})

test('what stands in the work, in places for anything, or was only deleted is not', () => {
  const honest = [
    '/workspace/conftest.py',
    '/workspace/.venv/lib/python3.11/site-packages/x.pth',
    '/workspace/bin/python3',
    '/srv/report.json',
    '/tmp/sitecustomize.py',
    '/etc/nginx/nginx.conf',
    '/usr/lib/systemd/system/x.service',
    '/usr/share/doc/x',
    '/opt/app/pyproject.toml',
    '/root/.gitconfig',
    '/root/notes.txt',
    '/usr/local/bin/report',
    '/workspace/.venv/bin/python',
    '/usr/local/cargo/registry/cache/x',
    `${site}/wheel-1.dist-info/RECORD`,
  ]
  expect(kindsOf(changed(honest))).toEqual([])
  expect(kindsOf(changed(['/usr/local/bin/report'], 'modified'))).toEqual([])
  // Whether what it stood in is still a directory is looked at.
  expect(kindsOf(changed(['/usr/lib/python3.11/EXTERNALLY-MANAGED'], 'deleted'))).toEqual([
    'linked_place /usr/lib/python3.11',
  ])
  expect(
    kindsOf(changed(['/opt/tool/bin/x', '/opt/tool/lib/python3.11/os.py']), { ...places, work: ['/opt/tool'] }),
  ).toEqual([])
})

test("a box that is worked in as a whole, or at home, still has places that are nobody's work", () => {
  const at = { ...places, work: ['/', '/root'] }
  expect(kindsOf(changed(['/usr/lib/python311.zip', '/root/.bashrc', '/root/conftest.py']), at)).toEqual([
    'start_file /usr/lib/python311.zip',
    'shell_start /root/.bashrc',
  ])
  for (const path of ['/root', '/root/.local', '/root/.config', '/usr/local/bin']) {
    expect(kindsOf([{ path, kind: 'modified' }], at)).toEqual([`linked_place ${path}`])
  }
  expect(kindsOf([{ path: '/workspace', kind: 'modified' }])).toEqual([])
})

test('a package of its own is suspect only where another of its name stands', () => {
  const own = [`${site}/mine/__init__.py`, `${site}/mine/core.py`]
  const [first] = suspectsIn(
    [...changed(own).filter(({ path }) => path !== `${site}/mine`), { path: `${site}/mine`, kind: 'added' }],
    places,
  )
  expect(first?.unless).toMatchObject({ noneOf: expect.arrayContaining(['/usr/lib/python3/dist-packages/mine']) })
  expect(first?.unless).not.toMatchObject({ noneOf: expect.arrayContaining([`${site}/mine`]) })
})

test('compiled Python is told by its directory, so that it can be made again, but for that of the work', () => {
  const compiled = [`${site}/a/__pycache__/b.cpython-311.pyc`, '/workspace/__pycache__/c.cpython-311.pyc']
  expect(kindsOf(changed(compiled))).toEqual([])
  expect(cachesIn(changed(compiled), places)).toEqual([`${site}/a/__pycache__`])
})
