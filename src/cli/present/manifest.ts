import type { Manifest } from '../../trajectory/index.ts'
import type { Paint } from './colour.ts'
import { bytes, plural } from './units.ts'

/** What an export came to, from its manifest. */
export function exportText(out: string, manifest: Manifest, paint: Paint): string {
  const { tokens, rows, rollouts, groups } = manifest
  const reasons = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([reason, count]) => `${reason} ${count}`)
      .join(', ')
  const masked = total(tokens.masked)
  const left = total(tokens.not_exported)
  return [
    `${paint('strong', manifest.exporter.name)} ${manifest.exporter.version} in ${out}`,
    `rows       ${rows.count} (${plural(rows.tokens, 'token')})`,
    `rollouts   ${rollouts.exported} of ${rollouts.selected}${dropped(rollouts.dropped)}`,
    `groups     ${groups.exported} of ${groups.selected}${dropped(groups.dropped)}`,
    `sampled    ${tokens.sampled} = ${tokens.trainable} trainable + ${masked} masked + ${left} not exported`,
    ...(masked === 0 ? [] : [`masked     ${reasons(tokens.masked)}`]),
    ...(left === 0 ? [] : [`left out   ${reasons(tokens.not_exported)}`]),
    `extension  ${percent(manifest.drift.extension_rate)}   exactness ${percent(manifest.drift.exactness_rate)}`,
    ...manifest.files.map(
      (file) => `file       ${file.name}  ${bytes(file.size_bytes)}  sha256 ${file.sha256.slice(0, 12)}`,
    ),
  ].join('\n')
}

function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function dropped(drops: readonly { readonly reason: string }[]): string {
  if (drops.length === 0) return ''
  const byReason = new Map<string, number>()
  for (const { reason } of drops) byReason.set(reason, (byReason.get(reason) ?? 0) + 1)
  return `; left out: ${[...byReason].map(([reason, count]) => `${reason} ${count}`).join(', ')}`
}

function percent(rate: number | null): string {
  return rate === null ? 'not applicable' : `${(rate * 100).toFixed(1)} %`
}
