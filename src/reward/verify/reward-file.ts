/** A reward as a verifier wrote it, or why there is none. */
export type RewardReading =
  | { readonly ok: true; readonly reward: number; readonly components: Readonly<Record<string, number>> }
  | { readonly ok: false; readonly reason: string }

/**
 * Reads Harbor's verdict files: `reward.json`, an object of numbers, wins over `reward.txt`, one number
 * (Harbor 0.24, `docs/content/docs/tasks/index.mdx`), and both must mean the same. The reward of an object is its key `reward`, or its only key;
 * the other keys are components. Anything else is no reward: a broken verifier must not look like a failed agent.
 */
export function readRewardFiles(files: { readonly json: string | null; readonly text: string | null }): RewardReading {
  if (files.json !== null) return agreed(fromJson(files.json), files.text === null ? null : fromText(files.text))
  if (files.text !== null) return fromText(files.text)
  return { ok: false, reason: 'The verifier wrote neither reward.json nor reward.txt.' }
}

/** One that a stranger wrote beside the verifier's own says something else. Rounding apart: a tenth is none. */
function agreed(json: RewardReading, text: RewardReading | null): RewardReading {
  if (!json.ok || text?.ok !== true || Math.abs(json.reward - text.reward) < 0.1) return json
  return { ok: false, reason: `reward.json says ${json.reward} and reward.txt ${text.reward}.` }
}

function fromJson(text: string): RewardReading {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return { ok: false, reason: 'reward.json is not JSON.' }
  }
  if (typeof parsed === 'number') return finite(parsed, {})
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    return { ok: false, reason: 'reward.json is not an object of numbers.' }
  }
  const components: Record<string, number> = {}
  for (const [name, value] of Object.entries(parsed)) {
    const number = typeof value === 'boolean' ? Number(value) : value
    if (typeof number !== 'number' || !Number.isFinite(number)) {
      return { ok: false, reason: `reward.json: ${name} is not a finite number.` }
    }
    components[name] = number
  }
  const names = Object.keys(components)
  const key = names.includes('reward') ? 'reward' : names.length === 1 ? names[0] : undefined
  const reward = key === undefined ? undefined : components[key]
  if (key === undefined || reward === undefined) {
    return { ok: false, reason: `reward.json has no key "reward" (it has ${names.join(', ') || 'none'}).` }
  }
  const { [key]: _, ...others } = components
  return finite(reward, others)
}

function fromText(text: string): RewardReading {
  const trimmed = text.trim()
  if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(trimmed)) {
    return { ok: false, reason: `reward.txt is not one number: ${JSON.stringify(trimmed.slice(0, 80))}.` }
  }
  return finite(Number(trimmed), {})
}

function finite(reward: number, components: Readonly<Record<string, number>>): RewardReading {
  if (!Number.isFinite(reward)) return { ok: false, reason: `The reward ${reward} is not finite.` }
  return { ok: true, reward, components }
}
