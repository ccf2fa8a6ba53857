// Numbers, times and tensors for people. What is not known is a dash.

import type {Tensor} from '../api/schema'

export const unknown = '–'

// number keeps three digits that count: 0.123, 12.3, 1,234.
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return unknown
  const size = Math.abs(value)
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3
  return value.toLocaleString('en-US', {maximumFractionDigits: digits})
}

// compact is number with k and M, for axes and narrow cells.
export function compact(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return unknown
  if (Math.abs(value) < 1000) return number(value)
  return value.toLocaleString('en-US', {notation: 'compact', maximumFractionDigits: 1}).replace('K', 'k')
}

export function rate(perSecond: number | null | undefined): string {
  return perSecond === null || perSecond === undefined ? unknown : `${compact(perSecond)}/s`
}

const space = '\u00a0' // at which a line does not break

// share is a percentage that never says 100 % of what is less.
export function share(part: number | null | undefined): string {
  if (part === null || part === undefined || !Number.isFinite(part)) return unknown
  const percent = part * 100
  if (percent === 0) return `0${space}%`
  if (percent >= 100) return `${Math.round(percent).toLocaleString('en-US')}${space}%`
  const digits = percent > 98.9 || percent < 1 ? 2 : 1
  const factor = 10 ** digits
  const cut = percent > 50 ? Math.floor(percent * factor) / factor : Math.max(1 / factor, Math.round(percent * factor) / factor)
  return `${Number(cut.toFixed(digits))}${space}%`
}

// micros is a latency.
export function micros(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return unknown
  if (value === 0) return '0 ms'
  if (value < 1000) return `${Math.round(value)} µs`
  if (value < 1e6) return `${number(value / 1000)} ms`
  if (value < 120e6) return `${number(value / 1e6)} s`
  return seconds(value / 1e6)
}

// seconds is a length of time in its two largest units.
export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return unknown
  const units: [number, string][] = [
    [86400, 'd'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ]
  let rest = Math.max(0, Math.round(value))
  const parts: string[] = []
  for (const [size, unit] of units) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) parts.push(`${count} ${unit}`)
    if (parts.length === 2 || (parts.length === 1 && count === 0)) break
  }
  return parts.join(' ') || '0 s'
}

// ago says how long a moment is past, or away.
export function ago(at: number, now: number): string {
  const distance = Math.round((now - at) / 1000)
  if (Math.abs(distance) < 2) return 'now'
  const length = seconds(Math.abs(distance)).split(' ').slice(0, 2).join(' ')
  return distance > 0 ? `${length} ago` : `in ${length}`
}

// utc is a moment in full, to be compared between people.
export function utc(at: string | number | Date): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime())
    ? unknown
    : date
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, ' UTC')
}

// clock is the time of day here.
export function clock(at: string | number | Date): string {
  return new Date(at).toLocaleTimeString('en-GB')
}

export function bytes(size: number | null | undefined): string {
  if (size === null || size === undefined) return unknown
  const units = ['B', 'kB', 'MB', 'GB']
  let value = size
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return `${number(value)} ${units[unit]}`
}

// words makes words of a name from a program: refused_late → refused late.
export function words(name: string): string {
  return name.replaceAll('_', ' ').replace(/\bslo\b/, 'SLO')
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

// count says "1 replica", "2 replicas".
export function count(n: number, noun: string): string {
  return `${n.toLocaleString('en-US')} ${noun}${n === 1 ? '' : 's'}`
}

// tensorText is a tensor with its name, written as errors write it: `image float32[3,224,224]`, where -1 is any length.
export function tensorText({name, type, shape}: Tensor): string {
  return `${name} ${type}${shape?.length ? `[${shape.join(',')}]` : ''}`
}
