const known = [900, 3600, 6 * 3600, 86400, 7 * 86400]

// spanOf is the time that charts show, in seconds, from the address.
export function spanOf(query: URLSearchParams): number {
  const asked = Number(query.get('window'))
  return known.includes(asked) ? asked : 900
}

// pollInterval is how often charts of a span are asked for, in milliseconds: as often as they have a new point.
export function pollInterval(span: number): number {
  return Math.min(60_000, Math.max(5000, (span / 240) * 1000))
}
