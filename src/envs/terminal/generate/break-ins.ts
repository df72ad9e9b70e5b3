import { type Dice, dice } from '../../dice.ts'
import type { GeneratorSeed, GeneratorSpec } from '../../generate/index.ts'
import type { TerminalData } from '../data.ts'
import { carriedTask, type Drawn } from './carried-task.ts'

/** One request, before it is a line of a log. */
interface Hit {
  /** Seconds since the first day began, in UTC. */
  readonly at: number
  readonly ip: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly agent: string
  /** Cookie of the session; `-` where there is none. */
  readonly session: string
}

/** What is asked at a level, beside what the levels below it ask. */
const asked = ['failed_logins', 'first_success', 'stolen', 'addresses'] as const
/** Servers and rotated parts of each, by level: one log at first, nine in the end. */
const logs = [
  { servers: 1, parts: 1 },
  { servers: 1, parts: 3 },
  { servers: 2, parts: 3 },
  { servers: 3, parts: 3 },
] as const
const day = 86_400
const start = Date.UTC(2026, 2, 1) / 1000

/**
 * Logs of a shop whose passwords somebody guessed. Each level has more logs and asks for one thing more; what only looks like the answer is in all
 * of them: a crawler that is louder, a partner with more refusals elsewhere, a customer who forgot a password.
 */
export const breakIns: GeneratorSpec<TerminalData> = {
  name: 'break-ins',
  levels: asked.length,
  generate: (at) => carriedTask(draw(at), { ...at, name: 'break-ins' }),
}

function draw({ seed, level }: GeneratorSeed): Drawn {
  const chance = dice(seed * 8 + level)
  const { servers, parts } = logs[level - 1] ?? logs[0]
  const host = chance.shuffled(Array.from({ length: 250 }, (_, i) => i + 1))
  const address = (at: number) => `203.0.${113 + (at % 2)}.${host[at]}`
  const [attacker, crawler, clumsy, partner, second] = [0, 1, 2, 3, 4].map(address)
  const who = { attacker: attacker ?? '', crawler: crawler ?? '', clumsy: clumsy ?? '', partner: partner ?? '' }
  const session = (): string => `s${chance.between(0x100000, 0xffffff).toString(16)}`
  const stolenBy = session()
  const hits: Hit[] = []
  const hit = (at: number, ip: string, request: string, status: number, more: Partial<Hit> = {}): void => {
    const [method = '', path = ''] = request.split(' ')
    hits.push({ at, ip, method, path, status, agent: chance.pick(browsers), session: '-', ...more })
  }
  const total = parts * day
  const tool = { agent: 'python-requests/2.31' }
  for (let i = 0; i < 30 * parts * servers; i += 1) {
    hit(
      chance.between(0, total - 1),
      address(chance.between(10, 40)),
      `GET ${chance.pick(pages)}`,
      chance.pick([200, 200, 304, 404]),
    )
  }
  for (let i = 0; i < 24 * parts * servers; i += 1) {
    hit(chance.between(0, total - 1), who.crawler, `GET ${chance.pick(pages)}`, 200, { agent: 'FriendlyBot/2.1' })
  }
  const clumsyAt = chance.between(1000, 20_000)
  for (let i = 0; i < 5; i += 1) hit(clumsyAt + 40 * i, who.clumsy, 'POST /login', 401)
  hit(clumsyAt + 300, who.clumsy, 'POST /login', 302, { session: session() })
  const partnerIn = { session: session() }
  hit(21_000, who.partner, 'POST /login', 302, partnerIn)
  for (let i = 0; i < 22 * parts; i += 1) hit(21_100 + i * 900, who.partner, 'POST /api/login', 401)
  for (const path of exported) hit(total - 2000, who.partner, `GET ${path}`, 200, partnerIn)
  // The guesses begin on the first day, and the last one is right on the last day.
  const inside = total - chance.between(8000, 20_000)
  const failed = chance.between(13, 19) * parts
  for (let i = 0; i < failed; i += 1) {
    hit(24_000 + Math.floor(((inside - 24_100) * i) / failed), who.attacker, 'POST /login', 401, tool)
  }
  for (let i = 0; i < 3; i += 1) hit(inside - 900 + i, who.attacker, 'GET /login', 401, tool)
  hit(inside - 60, who.attacker, `GET ${exported[0]}`, 403, tool)
  hit(inside, who.attacker, 'POST /login', 302, { ...tool, session: stolenBy })
  hit(inside + 400, who.attacker, 'POST /login', 302, { ...tool, session: stolenBy })
  const taken = chance.shuffled(exported).slice(0, chance.between(2, 4))
  const withSession = { ...tool, session: stolenBy }
  for (const [i, path] of taken.entries()) {
    hit(inside + 20 + 9 * i, who.attacker, `GET ${path}?page=1`, 200, withSession)
    hit(inside + 21 + 9 * i, who.attacker, `GET ${path}?page=2`, 200, withSession)
  }
  hit(inside + 90, who.attacker, 'GET /export/keys.csv', 403, withSession)
  hit(inside + 95, who.attacker, 'GET /exports/readme.txt', 200, withSession)
  hit(inside + 99, who.attacker, 'HEAD /export/payroll.csv', 200, withSession)
  // Somebody else with the same cookie is the same thief elsewhere.
  const elsewhere = level >= 4 && second !== undefined ? [second] : []
  for (const ip of elsewhere) hit(inside + 600, ip, 'GET /export/archive.zip', 200, { session: stolenBy })

  const truth = {
    attacker: who.attacker,
    failed_logins: failed,
    first_success: timeText(inside),
    stolen: taken.toSorted(),
    addresses: [who.attacker, ...elsewhere].toSorted(),
  }
  const keys = ['attacker', ...asked.slice(0, level)] as (keyof typeof truth)[]
  const expected = Object.fromEntries(keys.map((key) => [key, truth[key]]))
  const wrong = (more: Partial<typeof truth>): string =>
    `cat > /workspace/report.json <<'END'\n${JSON.stringify({ ...expected, ...more })}\nEND`
  const last = keys.at(-1) ?? 'attacker'
  return {
    instruction: instructionOf(keys, servers, parts),
    work: logFiles(chance, hits, level),
    tests: { 'check.py': check, 'expected.json': `${JSON.stringify(expected)}\n` },
    oracle: [
      { think: 'First a look at the files, then at who fails to log in.' },
      { shell: 'cd /workspace && find logs -type f | sort && head -n 2 $(find logs -type f | sort | head -n 1)' },
      { shell: `cat > /tmp/hits.py <<'PY'\n${reader}PY` },
      ...keys.map((key) => ({ shell: `cat > /tmp/${key}.py <<'PY'\n${solvers[key]}PY\npython3 /tmp/${key}.py` })),
    ],
    cheats: {
      'names-the-loudest': wrong({ attacker: who.crawler }),
      'counts-every-refusal': wrong({ failed_logins: failed + 3 }),
      'leaves-the-last-key-out': `cat > /workspace/report.json <<'END'\n${JSON.stringify(
        Object.fromEntries(Object.entries(expected).filter(([key]) => key !== last)),
      )}\nEND`,
      'changes-the-logs': `cd /workspace && find logs -type f -exec sed -i '/${who.attacker} /d' {} + && ${wrong({ attacker: who.partner })}`,
      ...(level >= 2 ? { 'takes-local-time': wrong({ first_success: timeText(inside + 7200) }) } : {}),
      ...(level >= 3 ? { 'takes-what-was-refused': wrong({ stolen: [...taken, '/export/keys.csv'].toSorted() }) } : {}),
      ...(level >= 4 ? { 'forgets-the-other-address': wrong({ addresses: [who.attacker] }) } : {}),
    },
  }
}

/** A line goes to one of the servers; parts are by the day, `access.log` is the newest. From level 2 on servers write local time. */
function logFiles(chance: Dice, hits: readonly Hit[], level: number): Record<string, string> {
  const { servers, parts } = logs[level - 1] ?? logs[0]
  const zones = level >= 2 ? [120, -300, 330] : [0]
  const lines = new Map<string, string[]>()
  for (const one of hits.toSorted((a, b) => a.at - b.at)) {
    const age = parts - 1 - Math.min(parts - 1, Math.floor(one.at / day))
    const path = `logs/web${chance.between(1, servers)}/access.log${age === 0 ? '' : `.${age}`}`
    const stamp = stampText(one.at, chance.pick(zones))
    const { ip, method, path: target, status, agent, session } = one
    const size = chance.between(120, 48_000)
    const line = `${ip} - - [${stamp}] "${method} ${target} HTTP/1.1" ${status} ${size} "-" "${agent}" ${session}`
    const before = lines.get(path)
    if (before === undefined) lines.set(path, [line])
    else before.push(line)
  }
  return Object.fromEntries([...lines].map(([path, all]) => [path, `${all.join('\n')}\n`]))
}

function instructionOf(keys: readonly string[], servers: number, parts: number): string {
  const where = servers === 1 ? 'Its access log is' : `It has ${servers} web servers, whose access logs are`
  const rotated =
    parts === 1 ? '' : ', rotated by the day: `access.log` is the newest part, then `access.log.1`, then `access.log.2`'
  const told: Readonly<Record<string, string>> = {
    attacker: 'the IP address of that client, a string.',
    failed_logins:
      'how many `POST /login` requests of that client were answered with 401, over all log files, an integer.',
    first_success:
      "the time of that client's first `POST /login` that was answered with 302, in UTC, in the form `2026-03-01T12:34:56Z`.",
    stolen:
      'the distinct paths below `/export/` that the client fetched with `GET` and status 200 after that moment, as a sorted array of strings. A query string (`?` and what follows it) is not part of the path.',
    addresses:
      'all IP addresses that sent requests under the session which that login began (the last field of a line), as a sorted array of strings.',
  }
  return [
    `The web shop of a small firm was attacked. ${where} below \`/workspace/logs\`, in the combined log format with the session at the end of each line${rotated}. Time stamps carry a zone offset.`,
    'One client guessed passwords: it sent the most `POST /login` requests that were answered with status 401. Later one of its `POST /login` requests was answered with 302, which means that it got in.',
    `Write \`/workspace/report.json\`, one JSON object with exactly these keys:\n\n${keys.map((key) => `- \`${key}\`: ${told[key]}`).join('\n')}`,
  ].join('\n\n')
}

const pages = ['/', '/shop', '/shop/tea', '/shop/cups', '/about', '/static/site.css']
const exported = [
  '/export/customers.csv',
  '/export/orders-2025.csv',
  '/export/orders-2026.csv',
  '/export/suppliers.csv',
]
const browsers = ['Mozilla/5.0 (X11; Linux x86_64)', 'curl/7.88.1', 'Mozilla/5.0 (Macintosh)']
const months = ['Jan', 'Feb', 'Mar', 'Apr']

function timeText(at: number): string {
  return `${new Date((start + at) * 1000).toISOString().slice(0, 19)}Z`
}

/** As the combined log format writes it, of a clock that is `zone` minutes from UTC. */
function stampText(at: number, zone: number): string {
  const local = new Date((start + at + zone * 60) * 1000).toISOString()
  const month = months[Number(local.slice(5, 7)) - 1]
  const offset = `${zone < 0 ? '-' : '+'}${two(Math.floor(Math.abs(zone) / 60))}${two(Math.abs(zone) % 60)}`
  return `${local.slice(8, 10)}/${month}/${local.slice(0, 4)}:${local.slice(11, 19)} ${offset}`
}

function two(number: number): string {
  return String(number).padStart(2, '0')
}

const reader = `import json, os, re
from collections import Counter
from datetime import datetime, timezone
LINE = re.compile(r'(\\S+) \\S+ \\S+ \\[([^\\]]+)\\] "(\\S+) (\\S+) [^"]*" (\\d+) .* (\\S+)$')
hits = []
for folder, _, names in os.walk('/workspace/logs'):
    for name in names:
        for line in open(os.path.join(folder, name)):
            ip, stamp, method, target, status, session = LINE.match(line.rstrip()).groups()
            when = datetime.strptime(stamp, '%d/%b/%Y:%H:%M:%S %z').astimezone(timezone.utc)
            hits.append((when, ip, method, target.split('?')[0], int(status), session))
report = json.load(open('/workspace/report.json')) if os.path.exists('/workspace/report.json') else {}
guesses = Counter(h[1] for h in hits if h[2:5] == ('POST', '/login', 401))
attacker, failed = guesses.most_common(1)[0]
first = min((h for h in hits if h[1:5] == (attacker, 'POST', '/login', 302)), key=lambda h: h[0])
def add(key, value):
    report[key] = value
    json.dump(report, open('/workspace/report.json', 'w'), indent=2)
    print(key, value)
`
const use = `import sys\nsys.path.insert(0, '/tmp')\nfrom hits import *\n`
const solvers: Readonly<Record<string, string>> = {
  attacker: `${use}add('attacker', attacker)\n`,
  failed_logins: `${use}add('failed_logins', failed)\n`,
  first_success: `${use}add('first_success', first[0].strftime('%Y-%m-%dT%H:%M:%SZ'))\n`,
  stolen: `${use}add('stolen', sorted({h[3] for h in hits if h[1] == attacker and h[0] > first[0] and h[2] == 'GET' and h[4] == 200 and h[3].startswith('/export/')}))\n`,
  addresses: `${use}add('addresses', sorted({h[1] for h in hits if h[5] == first[5]}))\n`,
}

const check = `"""Holds /workspace/report.json against what was drawn: nothing of the agent's files is believed."""

import json

with open("/tests/expected.json") as file:
    truth = json.load(file)
try:
    with open("/workspace/report.json") as file:
        report = json.load(file)
except Exception as error:
    print(f"report.json: {error!r}")
    report = None
checks = {"is_object_with_exact_keys": isinstance(report, dict) and set(report) == set(truth)}
for key, value in truth.items():
    given = report.get(key) if isinstance(report, dict) else None
    checks[key] = type(given) is type(value) and given == value
    if not checks[key]:
        print(f"{key}: wrong value {str(given)[:200]}")
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
`
