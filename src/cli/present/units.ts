import type { Id } from '../../core/index.ts'

/** The part of an id that people type: the random tail, because the head of a UUIDv7 is a time that neighbours share. */
export function shortId(id: Id): string {
  return id.slice(-8)
}

/** `950 ms`, `4.2 s`, `3 m 07 s`, `2 h 05 m`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, '0')} s`
  const minutes = Math.floor(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} m`
}

/** Local time, to the second. */
export function timeOfDay(atMs: number): string {
  const date = new Date(atMs)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':')
}

/** Local date and time, to the second. */
export function dateAndTime(atMs: number): string {
  const date = new Date(atMs)
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, '0'))
  return `${day.join('-')} ${timeOfDay(atMs)}`
}

/** `812 B`, `3.4 KB`, `1.2 GB`; powers of 1000. */
export function bytes(count: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let value = count
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit] ?? ''}`
}

/** `1 call`, `2 calls`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
