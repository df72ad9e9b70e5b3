import type { Learned } from './learn.ts'

/** Reward by step, and the two examinations as lines across. */
export function picture(subject: string, { steps: all, before, after }: Learned): string {
  const [width, height, edge] = [640, 320, 48]
  const x = (step: number): number => edge + (step / Math.max(1, all.length - 1)) * (width - 2 * edge)
  const y = (reward: number): number => height - edge - reward * (height - 2 * edge)
  const points = all.map(({ step, values }) => `${x(step).toFixed(1)},${y(values['reward'] ?? 0).toFixed(1)}`).join(' ')
  const across = (reward: number, text: string): string => `
  <line x1="${edge}" x2="${width - edge}" y1="${y(reward)}" y2="${y(reward)}" stroke="#999" stroke-dasharray="4 4"/>
  <text x="${width - edge}" y="${y(reward) - 6}" text-anchor="end">${text} ${reward.toFixed(2)}</text>`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13">
  <rect width="${width}" height="${height}" fill="#fff"/>
  <text x="${edge}" y="24" font-size="16">${subject}: mean reward of each step's rollouts</text>
  <text x="${edge - 8}" y="${y(0) + 4}" text-anchor="end">0</text><text x="${edge - 8}" y="${y(1) + 4}" text-anchor="end">1</text>
  <text x="${width / 2}" y="${height - 16}" text-anchor="middle">step</text>${across(before, 'held out, before')}${across(after, 'held out, after')}
  <polyline points="${points}" fill="none" stroke="#1a66cc" stroke-width="2"/>
</svg>
`
}
