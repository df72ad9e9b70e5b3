import { dice } from '../../dice.ts'
import type { GeneratorSeed, GeneratorSpec } from '../../generate/index.ts'
import type { TerminalData } from '../data.ts'
import { carriedTask, type Drawn } from './carried-task.ts'
import { main, type Stage, stages } from './repair-stages.ts'

/** Stages of the program and how many of them are broken, by level; from level 3 on the order is wrong too, at level 4 it does not start. */
const sizes = [
  { names: ['clean', 'total', 'rank'], broken: 1 },
  { names: ['clean', 'dedupe', 'total', 'rank'], broken: 2 },
  { names: ['clean', 'dedupe', 'void', 'total', 'rank'], broken: 2 },
  { names: ['clean', 'dedupe', 'void', 'window', 'total', 'tax', 'rank'], broken: 3 },
] as const

/**
 * A program of several stages that is not what its README says: wrong code, from level 3 on a wrong configuration, at level 4 a start that fails. Its
 * sample shows some of it; hidden inputs show all of it.
 */
export const repairs: GeneratorSpec<TerminalData> = {
  name: 'repairs',
  levels: sizes.length,
  generate: (at) => carriedTask(draw(at), { ...at, name: 'repairs' }),
}

function draw({ seed, level }: GeneratorSeed): Drawn {
  const chance = dice(seed * 8 + level)
  const { names, broken } = sizes[level - 1] ?? sizes[0]
  const used = names.map((name): Stage & { readonly name: string } => ({ name, ...stages[name] }))
  const faulty = chance.shuffled(used).slice(0, broken)
  const faults = new Map<string, string>(faulty.map(({ name, wrong }) => [name, chance.pick(wrong)]))
  const from = chance.between(2, 12)
  const window: readonly [string, string] = [dayText(from), dayText(from + chance.between(8, 14))]
  const config = { order: names, window, tax_percent: 10 }
  const wrongOrder = names.map((name) => ({ dedupe: 'void', void: 'dedupe' })[name as string] ?? name)
  const shipped = level >= 3 ? { ...config, order: wrongOrder } : config
  const runs = 'exec python3 -I /workspace/app/main.py /workspace/app/config.json'
  const fails = runs.replace('config.json', 'settings.json')
  const right = Object.fromEntries(used.map(({ name, code }) => [`app/stages/${name}.py`, code]))
  const rows = () => inputOf(chance, window)
  const fixes = [
    ...faulty.map(({ name, code }) => fix(`app/stages/${name}.py`, code)),
    ...(level >= 3 ? [fix('app/config.json', json(config))] : []),
    ...(level >= 4 ? [fix('run.sh', `#!/bin/bash\n${runs}\n`)] : []),
  ]
  const without = (at: number) => fixes.filter((_, i) => i !== at).join('\n') || 'true'
  return {
    instruction: `The program in \`/workspace/app\` is started by \`bash /workspace/run.sh\`, reads sales as CSV from its standard input and prints totals as CSV. It does not do what \`/workspace/app/README.md\` says. Mend it, so that it does for every input; the README is right. Keep the layout of the files. \`/workspace/sample.csv\` is an example of its input.`,
    work: {
      'app/README.md': readmeOf(used, config),
      'app/main.py': main,
      'app/config.json': json(shipped),
      ...right,
      ...Object.fromEntries([...faults].map(([name, code]) => [`app/stages/${name}.py`, code])),
      'run.sh': `#!/bin/bash\n${level >= 4 ? fails : runs}\n`,
      'sample.csv': rows(),
    },
    tests: {
      'check.py': check,
      'reference/main.py': main,
      'reference/config.json': json(config),
      ...Object.fromEntries(used.map(({ name, code }) => [`reference/stages/${name}.py`, code])),
      'cases/1.csv': rows(),
      'cases/2.csv': rows(),
      'cases/3.csv': rows(),
    },
    oracle: [
      { think: 'The README says what each stage does; I hold the code against it, one stage after the other.' },
      { shell: 'cd /workspace && cat app/README.md app/config.json run.sh && cat app/stages/*.py' },
      ...fixes.map((shell) => ({ shell })),
      { shell: 'bash /workspace/run.sh < /workspace/sample.csv | head' },
    ],
    cheats: {
      ...Object.fromEntries(fixes.map((_, at) => [`leaves-fault-${at + 1}`, without(at)])),
      'prints-the-sample': `${fixes.join('\n')}
bash /workspace/run.sh < /workspace/sample.csv > /workspace/app/answer.csv
printf '#!/bin/bash\\ncat /workspace/app/answer.csv\\n' > /workspace/run.sh`,
      'runs-the-tests-own-program': `cat > /workspace/run.sh <<'END'
#!/bin/bash
exec python3 -I /tests/reference/main.py /tests/reference/config.json
END`,
    },
  }
}

function fix(path: string, text: string): string {
  return `cat > /workspace/${path} <<'END'\n${text}END`
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

function dayText(day: number): string {
  return `2026-03-${String(day).padStart(2, '0')}`
}

type Row = readonly [id: number, day: string, shop: string, item: string, qty: number, cents: number, note: string]

/** Sales, among them for each stage those that only right code counts right. */
function inputOf(chance: ReturnType<typeof dice>, [first, last]: readonly [string, string]): string {
  const shops = chance.shuffled(['north', 'south', 'east', 'west', 'harbour', 'market'])
  const items = chance.shuffled(['tea', 'cups', 'pots', 'spoons', 'trays', 'filters'])
  const pick = <T>(all: readonly T[], at: number): T => all[at % all.length] as T
  let id = chance.between(100, 900)
  const row = (
    shop: number,
    item: number,
    qty: number,
    cents: number,
    more: { day?: string; note?: string; id?: number } = {},
  ): Row => {
    id += chance.between(1, 5)
    return [more.id ?? id, more.day ?? first, pick(shops, shop), pick(items, item), qty, cents, more.note ?? '']
  }
  const spaced = ([a, day, shop, item, ...rest]: Row): Row => [a, day, ` ${shop.toUpperCase()}`, `${item} `, ...rest]
  const plain = Array.from({ length: 14 }, () =>
    row(chance.between(0, 3), chance.between(0, 3), chance.between(1, 9), chance.between(50, 900), {
      day: chance.pick([first, last]),
    }),
  )
  const corrected = row(0, 0, 3, 400)
  const renamed = row(1, 1, 2, 300)
  const voided = row(2, 2, 5, 700)
  const traps: readonly Row[] = [
    spaced(row(0, 1, 2, 250)),
    row(0, 1, 1, 105),
    corrected,
    row(0, 0, 4, 400, { id: corrected[0] }),
    renamed,
    row(1, 2, 2, 300, { id: renamed[0] }),
    voided,
    row(2, 2, 5, 700, { id: voided[0], note: 'Void, wrong till' }),
    row(3, 3, 6, 800, { note: 'VOID' }),
    row(4, 4, 0, 500),
    row(2, 3, 10, 100 + chance.between(1, 9) * 20),
    row(3, 0, 12, 33),
    row(1, 3, 1, 345, { day: last }),
    row(0, 3, 2, 555, { day: dayText(Number(last.slice(-2)) + 1) }),
    row(0, 3, 2, 565, { day: dayText(Number(first.slice(-2)) - 1) }),
    // Two that are equal in the end, and are of nobody else.
    row(4, 5, 3, 5000),
    row(5, 5, 3, 5000),
  ]
  const head = 'id,day,shop,item,qty,cents,note'
  const quoted = (one: Row) => one.map((cell) => (String(cell).includes(',') ? `"${cell}"` : cell)).join(',')
  // Rows of one id keep their order, which says which is the correction.
  return `${[head, ...plain.map(quoted), ...traps.map(quoted)].join('\n')}\n`
}

function readmeOf(
  used: readonly (Stage & { readonly name: string })[],
  { window, tax_percent }: { readonly window: readonly [string, string]; readonly tax_percent: number },
): string {
  const told = used.map(({ name, says }, at) => `${at + 1}. \`${name}\`: ${says}`)
  return `# Totals of sales

\`bash run.sh < sales.csv\` prints one line for each shop and item. \`config.json\` names the stages in their order; each is a file of \`stages/\` with a function \`run(rows, config)\` that gives the rows of the next. The window is ${window[0]} to ${window[1]}, the tax ${tax_percent} percent.

${told.join('\n')}

The program prints \`shop,item,total,tax\` of what the last stage gives; the tax is 0 where no stage computes one.
`
}

const check = `"""Runs the agent's program, as another user, on hidden inputs and holds what it prints against the program as it was meant."""

import json
import os
import resource
import signal
import subprocess

environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, 16 << 20))


def given(text):
    process = subprocess.Popen(
        ["bash", "/workspace/run.sh"], cwd="/tmp", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, user=1000, group=1000, extra_groups=[], start_new_session=True, preexec_fn=limits,
    )
    try:
        return process.communicate(text, 20)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        # As timeout(1) says it: whether the program or the machine was slow is found out by whoever runs this.
        print("the program did not end")
        raise SystemExit(124)


checks = {}
for name in sorted(os.listdir("/tests/cases")):
    with open(f"/tests/cases/{name}", "rb") as file:
        text = file.read()
    meant = subprocess.run(
        ["python3", "-I", "/tests/reference/main.py", "/tests/reference/config.json"],
        input=text, stdout=subprocess.PIPE, env=environment, check=True,
    ).stdout
    came = given(text)
    checks[name] = came == meant
    if not checks[name]:
        print(name, f"differs: {came[:200]}")
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
`
