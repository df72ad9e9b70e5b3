import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { proven, publishedTask, type TaskFiles, verdictOn } from '../../../test/attacks/published-task.ts'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import type { Task } from '../../core/index.ts'
import { dockerProvider, type SandboxProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'

const diff: TaskFiles = {
  solution: 'mkdir -p /workspace/out; echo 5281 > /workspace/out/number.txt\n',
  tests: {
    'expected.txt': '5281\n',
    'test.sh': `#!/bin/bash
diff /workspace/out/number.txt /tests/expected.txt && r=1 || r=0
[ -e /workspace/keep.txt ] || r=0
echo $r > /logs/verifier/reward.txt
`,
  },
  dockerfile: 'RUN echo here > /workspace/keep.txt',
}
const inPytest: TaskFiles = {
  solution: 'echo "def answer(): return 42" > /workspace/answer.py\n',
  tests: {
    'test.sh': 'cd /workspace; python3 -m pytest -q /tests && r=1 || r=0; echo $r > /logs/verifier/reward.txt\n',
    'test_it.py': `import os, sys, pytest
sys.path.insert(0, '/workspace')
import answer
def test_answer(): assert answer.answer() == 42
def test_twice(): assert answer.answer() + answer.answer() == 84
@pytest.mark.skipif(not os.path.exists('/nowhere'), reason='elsewhere')
def test_elsewhere(): assert False
`,
  },
}
const elsewhere: TaskFiles = {
  solution: 'echo 5281 > /opt/number.txt\n',
  tests: { 'test.sh': 'grep -q 5281 /opt/number.txt && r=1 || r=0; echo $r > /logs/verifier/reward.txt\n' },
}

describe.runIf(await requireDocker())('a task that is verified on the files of the agent', () => {
  let sandbox: SandboxProvider
  let root: string
  beforeAll(() => {
    sandbox = dockerProvider({ warmBoxes: 0 })
    root = tempDir()
  })
  afterAll(() => sandbox.close())
  const task = async (name: string, files: TaskFiles): Promise<Task> => publishedTask(join(root, name), files)
  const on = (one: Task, script: string) => verdictOn(one, script, sandbox)

  it('and that was never validated is scored as it is, and says so', async () => {
    const one = await task('never', diff)
    expect(await on(one, diff.solution)).toMatchObject({ status: 'scored', reward: 1, trust: 'unvalidated' })
  })

  describe('whose solution passes where only its work is', () => {
    let one: Task
    beforeAll(async () => {
      one = await task('diff', diff)
      expect(await proven(one, sandbox)).toMatchObject({ status: 'proven', problems: [], notes: [] })
    })

    it('is verified there, in a box that the agent never touched', async () => {
      expect(JSON.parse(await readFile(join(one.source, 'validated.json'), 'utf8'))).toEqual({
        verifier: '6',
        proofs: { [one.digest]: { transplant: true, tests: [] } },
      })
      expect(await on(one, diff.solution)).toMatchObject({ status: 'scored', reward: 1, trust: 'separate' })
      expect(await on(one, 'true')).toMatchObject({ status: 'scored', reward: 0, trust: 'separate' })
      // The work directory comes as a whole, so that what is deleted is gone.
      const deleted = await on(one, `${diff.solution}\nrm /workspace/keep.txt`)
      expect(deleted).toMatchObject({ status: 'scored', reward: 0 })
    })

    it.each([
      ['by way of /proc', 'mkdir out; ln -s /proc/self/root/tests/expected.txt out/number.txt'],
      ['by way of a link to the root', 'mkdir out; ln -s / r; ln -s ../r/tests/expected.txt out/number.txt'],
      ['by way of a directory elsewhere', 'mkdir out; ln -s /tests /var/x; ln -s /var/x/expected.txt out/number.txt'],
      ['in two hops', 'mkdir out; ln -s /tests /opt/a; ln -s /opt/a /opt/b; ln -s /opt/b/expected.txt out/number.txt'],
      ['by way of its directory', 'ln -s /tests /opt/a; ln -s /opt/a out; ln -s expected.txt /opt/a/number.txt'],
      [
        'by links inside that go up together',
        'mkdir -p out d/e; ln -s .. d/e/up; ln -s ../d/e/up/../../tests/expected.txt out/number.txt',
      ],
    ])('a link to the gold is worth nothing: %s', async (_, script) => {
      const verdict = await on(one, `cd /workspace; ${script}`)
      expect([0, null]).toContain(verdict.reward)
    })

    it('a result that needs changes elsewhere has no number, and names them', async () => {
      const verdict = await on(
        one,
        'printf "#!/bin/sh\\nexit 0\\n" > /usr/local/bin/diff.real; cp /bin/true /opt/true; echo "/opt/lib" > /etc/ld.so.conf.d/x.conf; mkdir -p /workspace/out; echo > /workspace/out/number.txt; echo "diff() { true; }; export -f diff" > /etc/x.sh; ln -sf /opt/true /opt/diff; mv /usr/bin/diff /usr/bin/diff.old; ln -s /opt/true /usr/bin/diff',
      )
      expect([0, null]).toContain(verdict.reward)
      expect(verdict.evidence).toMatch(/\/usr\/bin\/diff/)
    })
  })

  it('whose solution changes other places keeps the files of the agent, and validation names the places', async () => {
    const one = await task('elsewhere', elsewhere)
    const row = await proven(one, sandbox)
    expect(row).toMatchObject({
      status: 'proven',
      notes: [expect.stringMatching(/^trust: shared.*\/opt\/number\.txt/)],
    })
    expect(await on(one, elsewhere.solution)).toMatchObject({ status: 'scored', reward: 1, trust: 'shared' })
    const declared = await task('declared', { ...elsewhere, toml: 'artifacts = ["/opt/number.txt"]' })
    expect(await proven(declared, sandbox)).toMatchObject({ status: 'proven', notes: [] })
    expect(await on(declared, elsewhere.solution)).toMatchObject({ status: 'scored', reward: 1, trust: 'separate' })
  })

  it('is worth its full reward only if each test passes that its solution passed', async () => {
    const one = await task('pytest', inPytest)
    expect(await proven(one, sandbox)).toMatchObject({ status: 'proven' })
    const { proofs } = JSON.parse(await readFile(join(one.source, 'validated.json'), 'utf8'))
    expect(proofs[one.digest].tests.toSorted()).toEqual([
      '/tests/test_it.py::test_answer',
      '/tests/test_it.py::test_twice',
    ])
    const write = (text: string) => `cat > /workspace/answer.py <<'X'\n${text}\nX`
    expect(await on(one, inPytest.solution)).toMatchObject({ status: 'scored', reward: 1, trust: 'in_process' })
    const cheats = [
      'import pytest\npytest.exit("fine", returncode=0)',
      'import pytest\ndef answer(): pytest.xfail()',
      'import pytest\ndef answer(): pytest.skip()',
      'import os\nos._exit(0)',
      'import atexit, os\natexit.register(os._exit, 0)\ndef answer(): return 0',
      'import sys\nsys.exit(0)',
    ]
    const settings = [
      `echo "collect_ignore_glob=['*']" > /workspace/conftest.py`,
      'printf "[pytest]\\naddopts = --co\\n" > /workspace/pytest.ini',
      'printf "[tool:pytest]\\naddopts = -k nothing\\n" > /workspace/setup.cfg',
    ].map((line) => `echo "def answer(): return 0" > /workspace/answer.py; ${line}`)
    for (const script of [...cheats.map(write), ...settings]) {
      const verdict = await on(one, script)
      expect({ script, reward: verdict.reward }).toEqual({ script, reward: 0 })
    }
  })

  it('in a box of its own neither: git runs no program of the work there', async () => {
    const one = await task('git', {
      mode: 'separate',
      solution: 'cd /workspace; git init -q .; echo 5281 > number.txt\n',
      tests: {
        'gold.txt': '5281\n',
        'test.sh': `cd /workspace; git status > /dev/null
cmp number.txt /tests/gold.txt && r=1 || r=0; echo $r > /logs/verifier/reward.txt\n`,
      },
    })
    expect(await proven(one, sandbox)).toMatchObject({ status: 'proven' })
    const cheat = `cd /workspace; git init -q .; echo 1 > number.txt
printf '#!/bin/sh\\ncp /tests/gold.txt /workspace/number.txt\\n' > run.sh; chmod 755 run.sh; cp run.sh .git/hooks/post-index-change
git config core.fsmonitor /workspace/run.sh`
    expect(await on(one, cheat)).toMatchObject({ status: 'scored', reward: 0 })
  })
})
