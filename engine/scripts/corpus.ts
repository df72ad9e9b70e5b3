/**
 * Training text for our vocabularies: documentation and type declarations of the installed npm packages whose licence
 * is permissive, plus generated English, shell, JSON and SQL in the manner of agent transcripts. Both halves are
 * deterministic: files are taken in sorted order, the generator runs on a fixed seed.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { mulberry32 } from '../src/policy/prng.ts'

const PERMISSIVE = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'CC0-1.0'])
const MAX_FILE_BYTES = 48_000

/** The licence field of a package directory, or undefined when it has none. */
function licenceOf(dir: string): string | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'))
    if (typeof manifest === 'object' && manifest !== null && 'license' in manifest) return String(manifest.license)
  } catch {
    return undefined
  }
  return undefined
}

function packageDirs(root: string): string[] {
  const dirs: string[] = []
  for (const name of readdirSync(root).toSorted()) {
    if (name.startsWith('.')) continue
    if (name.startsWith('@')) {
      for (const inner of readdirSync(join(root, name)).toSorted()) dirs.push(join(root, name, inner))
    } else {
      dirs.push(join(root, name))
    }
  }
  return dirs
}

/** Readable text files of permissively licensed packages under `nodeModules`, at most `limitBytes` in all. */
export function packageTexts(nodeModules: string, limitBytes: number): string[] {
  const texts: string[] = []
  let total = 0
  for (const dir of packageDirs(nodeModules)) {
    if (!PERMISSIVE.has(licenceOf(dir) ?? '')) continue
    for (const file of readdirSync(dir).toSorted()) {
      if (!/^(readme|history|changes|index)(\.md|\.d\.ts|\.js)$/i.test(file)) continue
      const path = join(dir, file)
      if (!statSync(path).isFile() || total > limitBytes) continue
      const text = readFileSync(path, 'utf8').slice(0, MAX_FILE_BYTES)
      texts.push(text)
      total += text.length
    }
  }
  return texts
}

const NOUNS =
  'file log server line test branch commit table query user error output script archive service port config module path key value response task directory process database row column permission package worker queue message token build binary'.split(
    ' ',
  )
const VERBS =
  'find read check run fix list count sort restore merge write remove update verify open close parse search extract start stop build move copy compare'.split(
    ' ',
  )
const ADJECTIVES =
  'failing broken missing first last largest empty hidden recent correct wrong small slow fast local remote'.split(' ')
const COMMANDS = [
  'ls -la /{n}',
  'cat /var/log/{n}.log | grep -c {a}',
  'grep -rn "{a} {n}" /app/src | head -20',
  'git log --oneline -n 10',
  'git checkout -b fix-{n} && git status',
  'sed -i "s/{n}/{v}/g" {n}.txt',
  "awk '{print $1}' /tmp/{n}.csv | sort | uniq -c | sort -rn | head",
  'python3 -m pytest -q tests/test_{n}.py',
  'tar -xzf {n}.tar.gz -C /tmp/{n}',
  'find . -name "*.{n}" -type f -mtime -1',
  'chmod 755 /usr/local/bin/{n}; chown root:root {n}',
  'sqlite3 {n}.db "SELECT COUNT(*) FROM {n};"',
  'cd /app && make {v} 2>&1 | tail -n 5',
  'echo "{a}" > /tmp/{n}.txt',
  'curl -s http://127.0.0.1:8000/v1/{n} | jq .',
  'for f in *.{n}; do echo "$f"; done',
  'systemctl status {n} --no-pager',
  "cat > {n}.py << 'EOF'\nimport os\n\n\ndef {v}_{n}(path):\n    return os.path.exists(path)\nEOF",
]
const SENTENCES = [
  'Let me {v} the {a} {n} first.',
  "I'll {v} the {n} and then {v} the {n}.",
  'The {a} {n} is in /var/log/{n}.log, so I need to {v} it.',
  'Now I have to {v} every {n} in the {n} and write the answer to /app/{n}.txt.',
  'The user wants me to {v} the {a} {n}. I should look at the {n} before I change anything.',
  'The task is done: the {n} has been written and the {n} passes.',
  'Your task: {v} the {a} {n} so that the {n} works again. Do not change the {n}.',
  'It looks like the {n} was {a}; we can {v} it with one command.',
  'This is a {a} {n} which does not {v} because the {n} is {a}.',
]
const SQL = [
  "SELECT {n}, COUNT(*) AS total FROM {n}s WHERE {n} = '{a}' GROUP BY {n} ORDER BY total DESC LIMIT 10;",
  'CREATE TABLE {n}s (id INTEGER PRIMARY KEY, {n} TEXT NOT NULL, created_at TIMESTAMP);',
  "INSERT INTO {n}s ({n}, {n}_id) VALUES ('{a}', 42);",
  'UPDATE {n}s SET {n} = NULL WHERE id IN (SELECT id FROM {n}s JOIN {n}s ON a.id = b.{n}_id);',
]

/** `count` generated records of agent-like text from a fixed seed. */
export function generatedTexts(count: number, seed: number): string[] {
  const random = mulberry32(seed)
  const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)] ?? ''
  const fill = (text: string): string =>
    text.replace(/\{([nva])\}/g, (_whole, kind: string) =>
      pick(kind === 'n' ? NOUNS : kind === 'v' ? VERBS : ADJECTIVES),
    )
  const texts: string[] = []
  for (let i = 0; i < count; i++) {
    const command = fill(pick(COMMANDS))
    const sentence = fill(pick(SENTENCES))
    const tool = JSON.stringify({
      type: 'function',
      function: {
        name: `${pick(VERBS)}_${pick(NOUNS)}`,
        description: sentence,
        parameters: {
          type: 'object',
          properties: { command: { type: 'string', description: fill('The {n} to {v}') } },
          required: ['command'],
        },
      },
    })
    texts.push(
      sentence,
      `${sentence}\n${command}\n`,
      tool.replace(/([:,])/g, '$1 '),
      `{"name": "${pick(['run_shell_command', 'bash', 'shell', 'exec', 'search', 'open', 'sql'])}", "arguments": {"command": ${JSON.stringify(command)}, "description": ${JSON.stringify(sentence)}}}`,
      fill(pick(SQL)),
      `total ${Math.floor(random() * 900)}\ndrwxr-xr-x ${Math.floor(random() * 9)} root root 4096 Nov ${1 + Math.floor(random() * 29)} 20:${10 + Math.floor(random() * 49)} ${pick(NOUNS)}\n`,
    )
  }
  return texts
}
