/** A stage of the program that `repairs` breaks. */
export interface Stage {
  /** What the README says of it. */
  readonly says: string
  readonly code: string
  /** The same with a fault. */
  readonly wrong: readonly string[]
}

/** `a` becomes `b`; a fault that changes nothing is none. */
function wrongBy(code: string, ...faults: readonly (readonly [string, string])[]): Pick<Stage, 'code' | 'wrong'> {
  return { code, wrong: faults.map(([a, b]) => code.replace(a, b)) }
}

/** In the order in which they make sense. Amounts are whole cents, so that no rounding is a matter of taste. */
export const stages = {
  clean: {
    says: 'takes spaces away from both ends of shop and item, and writes the shop in lower case.',
    ...wrongBy(
      `def run(rows, config):
    for row in rows:
        row["shop"] = row["shop"].strip().lower()
        row["item"] = row["item"].strip()
    return rows
`,
      ['row["item"].strip()', 'row["item"]'],
      ['.strip().lower()', '.strip()'],
    ),
  },
  dedupe: {
    says: 'of rows with the same id only the last stays.',
    ...wrongBy(
      `def run(rows, config):
    last = {}
    for row in rows:
        last[row["id"]] = row
    return list(last.values())
`,
      ['last[row["id"]] = row', 'last.setdefault(row["id"], row)'],
      ['last[row["id"]]', 'last[(row["id"], row["item"])]'],
    ),
  },
  void: {
    says: 'leaves out rows whose note has the word "void" in it, in capitals or not.',
    ...wrongBy(
      `def run(rows, config):
    return [row for row in rows if "void" not in row["note"].lower()]
`,
      ['row["note"].lower()', 'row["note"]'],
      ['"void" not in row["note"].lower()', 'row["qty"] != 0'],
    ),
  },
  window: {
    says: 'leaves out rows of a day before the first or after the last day of the window; both of those belong to it.',
    ...wrongBy(
      `def run(rows, config):
    first, last = config["window"]
    return [row for row in rows if first <= row["day"] <= last]
`,
      ['<= last', '< last'],
      ['first <= row["day"] <= last', 'first <= row["day"]'],
    ),
  },
  total: {
    says: 'gives each row its total: pieces times cents; from 10 pieces on 5 percent less, of the total of the row, rounded down to whole cents.',
    ...wrongBy(
      `def run(rows, config):
    for row in rows:
        row["total"] = row["qty"] * row["cents"]
        if row["qty"] >= 10:
            row["total"] = row["total"] * 95 // 100
    return rows
`,
      ['>= 10', '> 10'],
      ['row["total"] * 95 // 100', 'row["qty"] * (row["cents"] * 95 // 100)'],
    ),
  },
  tax: {
    says: 'gives each row its tax: the percentage of its total, half a cent rounded up.',
    ...wrongBy(
      `def run(rows, config):
    for row in rows:
        row["tax"] = (row["total"] * config["tax_percent"] + 50) // 100
    return rows
`,
      ['(row["total"] * config["tax_percent"] + 50) // 100', 'row["total"] * config["tax_percent"] // 100'],
      ['(row["total"] * config["tax_percent"] + 50) // 100', 'round(row["total"] * config["tax_percent"] / 100)'],
    ),
  },
  rank: {
    says: 'adds up totals and taxes of each shop and item; the largest total first, and of equal ones by shop, then item.',
    ...wrongBy(
      `def run(rows, config):
    sums = {}
    for row in rows:
        one = sums.setdefault((row["shop"], row["item"]), {"shop": row["shop"], "item": row["item"], "total": 0, "tax": 0})
        one["total"] += row["total"]
        one["tax"] += row.get("tax", 0)
    return sorted(sums.values(), key=lambda one: (-one["total"], one["shop"], one["item"]))
`,
      ['(-one["total"], one["shop"], one["item"]))', '(one["total"], one["shop"], one["item"]), reverse=True)'],
      ['(-one["total"], one["shop"], one["item"])', '(one["shop"], one["item"])'],
    ),
  },
} satisfies Readonly<Record<string, Stage>>

export const main = `import csv
import importlib.util
import json
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))


def stage(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(here, "stages", name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run


sys.dont_write_bytecode = True
with open(sys.argv[1]) as file:
    config = json.load(file)
rows = [{**row, "qty": int(row["qty"]), "cents": int(row["cents"])} for row in csv.DictReader(sys.stdin)]
for name in config["order"]:
    rows = stage(name)(rows, config)
out = csv.writer(sys.stdout, lineterminator="\\n")
out.writerow(["shop", "item", "total", "tax"])
for row in rows:
    out.writerow([row["shop"], row["item"], row["total"], row.get("tax", 0)])
`
